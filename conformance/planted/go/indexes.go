package main

// Build the indexes of a segment: chapters 40 to 42.

import "encoding/binary"

var bigEndian = binary.BigEndian

type open struct{ producer, firstOffset int64 }

// indexes gives the files that a current broker writes for a log, by suffix.
func indexes(data []byte, base int64, interval int) map[string][]byte {
	offsets, times, aborted := []byte{}, []byte{}, []byte{}
	since, latest, stored, latestOffset := 0, int64(-1), int64(-1), base
	addTime := func() {
		if latest > stored {
			times = bigEndian.AppendUint64(times, uint64(latest))
			times = bigEndian.AppendUint32(times, uint32(latestOffset-base))
			stored = latest
		}
	}
	opened := []open{}
	decode(data, true, defaultLimit, func(b batch) {
		if b.maxTimestamp > latest {
			latest, latestOffset = b.maxTimestamp, b.lastOffset
		}
		if since > interval {
			offsets = bigEndian.AppendUint32(offsets, uint32(b.lastOffset-base))
			offsets = bigEndian.AppendUint32(offsets, uint32(b.position))
			addTime()
			since = 0
		}
		since += b.size
		opened = track(opened, b, &aborted)
	})
	addTime()
	files := map[string][]byte{".index": offsets, ".timeindex": times}
	if len(aborted) > 0 {
		files[".txnindex"] = aborted
	}
	return files
}

// track opens and ends transactions, in the order of their first offsets, and adds an entry for one that was aborted.
func track(opened []open, b batch, aborted *[]byte) []open {
	if b.magic < 2 || b.producer < 0 {
		return opened
	}
	at := -1
	for number, one := range opened {
		if one.producer == b.producer {
			at = number
		}
	}
	if !b.isControl {
		if b.isTransactional && at < 0 {
			opened = append(opened, open{b.producer, b.baseOffset})
		}
		return opened
	}
	if at < 0 || len(b.records) == 0 {
		return opened
	}
	kind := bigEndian.Uint16(b.records[0].key[2:])
	if kind > 1 {
		return opened
	}
	ended, stable := opened[at], b.baseOffset+1
	opened = append(opened[:at:at], opened[at+1:]...)
	if len(opened) > 0 {
		stable = opened[0].firstOffset
	}
	if kind == 0 {
		*aborted = bigEndian.AppendUint16(*aborted, 0)
		for _, number := range []int64{ended.producer, ended.firstOffset, b.baseOffset, stable} {
			*aborted = bigEndian.AppendUint64(*aborted, uint64(number))
		}
	}
	return opened
}
