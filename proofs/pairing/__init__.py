"""Every writer by every reader: real producers write the same chosen records, and all implementations read them."""
