package main

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errCRC = errors.New("a CRC is wrong")

func mapped(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
}

// entry is the size of the first entry, 0 at the end.
func entry(data []byte) int {
	if len(data) < 17 {
		return 0
	}
	size := 12 + int(binary.BigEndian.Uint32(data[8:]))
	if size > len(data) {
		return 0
	}
	return size
}

// split gives one part for each thread, cut between entries.
func split(data []byte, threads int) [][]byte {
	if threads == 1 {
		return [][]byte{data}
	}
	parts, start, position := [][]byte{}, 0, 0
	for size := entry(data); size > 0; size = entry(data[position:]) {
		position += size
		if position*threads >= len(data)*(len(parts)+1) {
			parts = append(parts, data[start:position])
			start = position
		}
	}
	return parts
}

// some gives entries of about so many bytes, as a fetch would.
func some(data []byte, limit int) int {
	end := 0
	for end < limit {
		size := entry(data[end:])
		if size == 0 {
			break
		}
		end += size
	}
	return end
}

func scan(part []byte, _ bool) (Contents, error) {
	contents := Contents{}
	for size := entry(part); size > 0; size = entry(part) {
		last := binary.BigEndian.Uint64(part)
		if part[16] == 2 {
			last += uint64(binary.BigEndian.Uint32(part[23:]))
		}
		contents.word(last + uint64(size)<<40)
		part = part[size:]
	}
	return contents, nil
}

// crc uses what franz-go uses: Go's own checksums.
func crc(part []byte, _ bool) (Contents, error) {
	contents := Contents{}
	for size := entry(part); size > 0; size = entry(part) {
		var stored, found uint32
		if part[16] == 2 {
			stored, found = binary.BigEndian.Uint32(part[17:]), crc32.Checksum(part[21:size], castagnoli)
		} else {
			stored, found = binary.BigEndian.Uint32(part[12:]), crc32.ChecksumIEEE(part[16:size])
		}
		if stored != found {
			return contents, errCRC
		}
		contents.word(uint64(stored))
		part = part[size:]
	}
	return contents, nil
}

func versions() string {
	found := []string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			for _, name := range []string{"twmb/franz-go", "segmentio/kafka-go", "IBM/sarama"} {
				if strings.HasSuffix(module.Path, name) {
					found = append(found, name+" "+module.Version)
				}
			}
		}
		found = append(found, info.GoVersion)
	}
	return strings.Join(found, ", ")
}
