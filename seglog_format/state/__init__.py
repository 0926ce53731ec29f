"""The state that a broker keeps beside a log: settings, producer states, leader epochs, index entries, root files."""
