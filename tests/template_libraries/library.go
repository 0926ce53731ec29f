// An encoder, an index builder and a lookup, with which tests fill in the template: batches of magic 2 alone.
package main

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
)

var big = binary.BigEndian

func init() {
	encode, index, lookup = encoded, indexed, found
}

func encoded(batches []object) (out []byte, err error) {
	for _, batch := range batches {
		records, _ := batch["records"].([]any)
		isUsual := number(batch["producerId"]) < 0 && batch["deleteHorizonMs"] == nil && batch["isControl"] != true
		if number(batch["magic"]) != 2 || batch["codec"] != "none" || len(records) == 0 || !isUsual {
			return nil, skip("it writes no such batches")
		}
		base, first := number(batch["baseOffset"]), number(batch["baseTimestamp"])
		attributes := map[any]byte{"CreateTime": 0, "LogAppendTime": 8}[batch["timestampType"]]
		tail := big.AppendUint32([]byte{0, attributes}, uint32(number(batch["lastOffset"])-base))
		tail = big.AppendUint64(tail, uint64(first))
		tail = big.AppendUint64(tail, uint64(number(batch["maxTimestamp"])))
		tail = append(tail, bytes.Repeat([]byte{255}, 14)...)
		tail = big.AppendUint32(tail, uint32(len(records)))
		for _, one := range records {
			record := one.(object)
			body := binary.AppendVarint([]byte{0}, number(record["timestamp"])-first)
			body = binary.AppendVarint(body, number(record["offset"])-base)
			body = field(field(body, content(record["key"])), content(record["value"]))
			headers, _ := record["headers"].([]any)
			body = binary.AppendVarint(body, int64(len(headers)))
			for _, pair := range headers {
				body = field(field(body, content(pair.([]any)[0])), content(pair.([]any)[1]))
			}
			tail = append(binary.AppendVarint(tail, int64(len(body))), body...)
		}
		out = big.AppendUint32(big.AppendUint64(out, uint64(base)), uint32(9+len(tail)))
		out = append(big.AppendUint32(out, uint32(number(batch["partitionLeaderEpoch"]))), 2)
		out = big.AppendUint32(out, crc32.Checksum(tail, crc32.MakeTable(crc32.Castagnoli)))
		out = append(out, tail...)
	}
	return out, nil
}

func field(body, data []byte) []byte {
	if data == nil {
		return binary.AppendVarint(body, -1)
	}
	return append(binary.AppendVarint(body, int64(len(data))), data...)
}

func indexed(data []byte, baseOffset, intervalBytes int64) (map[string][]byte, error) {
	offsets, times, since, largest, newest := []byte{}, []byte{}, int64(0), int64(-1), int64(-1)
	for at := 0; at < len(data); {
		if data[at+16] != 2 || data[at+22]&0x27 != 0 {
			return nil, skip("it reads no such batches")
		}
		size, last := 12+int(big.Uint32(data[at+8:])), int64(big.Uint64(data[at:]))+int64(big.Uint32(data[at+23:]))
		if stamp := int64(big.Uint64(data[at+35:])); stamp > largest {
			largest, newest = stamp, last
		}
		if since > intervalBytes {
			offsets = big.AppendUint32(big.AppendUint32(offsets, uint32(last-baseOffset)), uint32(at))
			times = big.AppendUint32(big.AppendUint64(times, uint64(largest)), uint32(newest-baseOffset))
			since = 0
		}
		since += int64(size)
		at += size
	}
	if last := len(times) - 12; largest >= 0 && (last < 0 || int64(big.Uint64(times[last:])) < largest) {
		times = big.AppendUint32(big.AppendUint64(times, uint64(largest)), uint32(newest-baseOffset))
	}
	return map[string][]byte{".index": offsets, ".timeindex": times}, nil
}

func found(directory string, offset int64) (object, error) {
	names, _ := filepath.Glob(filepath.Join(directory, "*.log"))
	for i, name := range names {
		if i+1 < len(names) {
			if next, _ := strconv.ParseInt(filepath.Base(names[i+1])[:20], 10, 64); next <= offset {
				continue
			}
		}
		data, _ := os.ReadFile(name)
		for at := 0; at+17 <= len(data); at += 12 + int(big.Uint32(data[at+8:])) {
			first := int64(big.Uint64(data[at:]))
			last := first
			if data[at+16] == 2 {
				last += int64(big.Uint32(data[at+23:]))
			}
			if last >= offset {
				return object{"position": at, "baseOffset": strconv.FormatInt(first, 10)}, nil
			}
		}
	}
	return nil, nil
}
