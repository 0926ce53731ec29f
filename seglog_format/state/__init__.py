"""What a broker keeps beside a log: topic settings, producer states, leader epochs, index entries, root files."""
