"""The state that belongs to a log: settings, producer states, leader epochs, index entries, root files."""
