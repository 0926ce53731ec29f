"""Reading segments that a broker's plug-in has copied to a remote store, without a broker (chapters 46 and 47)."""
