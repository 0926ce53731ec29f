// An adapter in Go: change hello, decode and lookup; leave the rest.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

type object = map[string]any

func hello() object {
	return object{"ok": true, "protocol": 1,
		"implementation": object{"name": "your-library", "version": os.Args[1], "language": "Go"},
		"ops":            []string{"decode", "lookup"}, // leave out what it cannot do
		"features": object{"magic": []int{2}, "codec": []string{"none", "gzip"}, "crc": true, "control": "hidden",
			"headers": "ordered", "batchMeta": false, "bytesKeys": true, "partialTail": false, "indexEntry": false}}
}

// Absolute offset, milliseconds; a nil slice is null, an empty one is "".
func record(offset, timestamp int64, key, value []byte, headers [][2][]byte) object {
	pairs := [][2]any{}
	for _, header := range headers {
		pairs = append(pairs, [2]any{hex.EncodeToString(header[0]), text(header[1])})
	}
	return object{"offset": strconv.FormatInt(offset, 10), "timestamp": strconv.FormatInt(timestamp, 10),
		"key": text(key), "value": text(value), "headers": pairs}
}

func text(data []byte) any {
	if data == nil {
		return nil
	}
	return hex.EncodeToString(data)
}

func decode(data []byte) (records []object, err error) {
	// for each record of your library: records = append(records, record(...))
	// return records, err: records delivered before an error count
	return nil, fmt.Errorf("call your library here, with %d bytes", len(data))
}

// The batch that a reader begins at, or nil; a directory holds the files of the partition.
func lookup(directory string, offset int64) (found object, err error) {
	// return object{"position": position, "baseOffset": strconv.FormatInt(baseOffset, 10)}, nil
	return nil, fmt.Errorf("call your library here, with %s and %d", directory, offset)
}

func lookedUp(request object) object {
	text, isOffset := request["offset"].(string)
	if !isOffset {
		return object{"skip": object{"reason": "it finds offsets only"}}
	}
	directory, _ := os.MkdirTemp("", "lookup")
	defer os.RemoveAll(directory)
	for name, content := range request["files"].(object) {
		data, _ := hex.DecodeString(content.(string))
		os.WriteFile(filepath.Join(directory, name), data, 0o600)
	}
	offset, _ := strconv.ParseInt(text, 10, 64)
	found, err := lookup(directory, offset)
	if err != nil {
		return object{"ok": false, "reject": object{"class": "other", "message": err.Error()}}
	}
	return object{"ok": true, "found": found}
}

func answer(request object) object {
	switch request["op"] {
	case "hello":
		return hello()
	case "lookup":
		return lookedUp(request)
	}
	data, _ := hex.DecodeString(request["data"].(string))
	records, err := decode(data)
	batches := []object{{"records": append([]object{}, records...)}} // one is enough with "batchMeta": false
	if err != nil {
		return object{"ok": false, "reject": object{"class": "other", "message": err.Error()}, "batches": batches}
	}
	return object{"ok": true, "batches": batches}
}

func main() {
	out := json.NewEncoder(os.Stdout) // one line for each answer
	os.Stdout = os.Stderr             // keeps output of the library apart from the answers
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		request := object{}
		if err != nil || json.Unmarshal(line, &request) != nil || request["op"] == "stop" {
			return
		}
		reply := answer(request)
		reply["seq"] = request["seq"]
		out.Encode(reply)
	}
}
