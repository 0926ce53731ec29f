// An adapter in Go: change hello, and fill in the functions that your library has; leave the rest.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

type object = map[string]any

// What the library does: var decode = func(...) {...}. A function that stays nil is not listed, and not asked.
var (
	// The records, or those that were delivered before an error: records = append(records, record(...)).
	decode func(data []byte) (records []object, err error)
	// The bytes of batches; skip("...") as err where the library cannot be asked for such a batch. Fields as the
	// protocol has them, to be read by number and content: number(batch["baseOffset"]), content(record["key"]).
	encode func(batches []object) (data []byte, err error)
	// ".index", ".timeindex", and ".txnindex" if transactions were aborted.
	index func(data []byte, baseOffset, intervalBytes int64) (files map[string][]byte, err error)
	// The batch that a reader begins at, or nil; a directory holds the files of the partition:
	// object{"position": position, "baseOffset": strconv.FormatInt(baseOffset, 10)}
	lookup func(directory string, offset int64) (found object, err error)
)

func hello() object {
	return object{"ok": true, "protocol": 1,
		"implementation": object{"name": "your-library", "version": os.Args[1], "language": "Go"},
		"ops":            ops(),
		"features": object{"magic": []int{2}, "codec": []string{"none", "gzip"}, "crc": true, "control": "hidden",
			"headers": "ordered", "batchMeta": false, "bytesKeys": true, "partialTail": false, "indexEntry": false}}
}

func ops() []string {
	found := []string{}
	is := map[string]bool{"decode": decode != nil, "encode": encode != nil, "index": index != nil, "lookup": lookup != nil}
	for _, name := range []string{"decode", "encode", "index", "lookup"} {
		if is[name] {
			found = append(found, name)
		}
	}
	return found
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

func content(field any) []byte {
	if field == nil {
		return nil
	}
	data, err := hex.DecodeString(field.(string))
	if err != nil {
		panic(err)
	}
	return data
}

func number(field any) int64 {
	found, _ := strconv.ParseInt(fmt.Sprint(field), 10, 64) // of a number, or of its text
	return found
}

type skip string

func (reason skip) Error() string { return string(reason) }

func answered(request object) (reply object, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("%v", problem)
		}
	}()
	reply = object{"ok": true}
	switch request["op"] {
	case "hello":
		reply = hello()
	case "decode":
		records, failed := decode(content(request["data"]))
		err, reply["batches"] = failed, []object{{"records": append([]object{}, records...)}} // one: "batchMeta" is false
	case "encode":
		batches := []object{}
		for _, batch := range request["batches"].([]any) {
			batches = append(batches, batch.(object))
		}
		data, failed := encode(batches)
		err, reply["data"] = failed, hex.EncodeToString(data)
	case "index":
		files, failed := index(content(request["data"]), number(request["baseOffset"]), number(request["indexIntervalBytes"]))
		named := object{}
		for ending, data := range files {
			named[ending] = hex.EncodeToString(data)
		}
		err, reply["files"] = failed, named
	case "lookup":
		if request["offset"] == nil {
			return nil, skip("it finds offsets only")
		}
		directory, _ := os.MkdirTemp("", "lookup")
		defer os.RemoveAll(directory)
		for name, data := range request["files"].(object) {
			os.WriteFile(filepath.Join(directory, name), content(data), 0o600)
		}
		reply["found"], err = lookup(directory, number(request["offset"]))
	}
	return reply, err
}

func answer(request object) object {
	reply, err := answered(request)
	var reason skip
	if errors.As(err, &reason) {
		return object{"skip": object{"reason": string(reason)}}
	}
	if err != nil {
		refusal := object{"ok": false, "reject": object{"class": "other", "message": err.Error()}}
		if batches, is := reply["batches"]; is {
			refusal["batches"] = batches
		}
		return refusal
	}
	return reply
}

func main() {
	out := json.NewEncoder(os.Stdout) // one line for each answer
	os.Stdout = os.Stderr             // keeps output of the library apart from the answers
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		request := object{}
		parser := json.NewDecoder(bytes.NewReader(line))
		parser.UseNumber() // not as floating point
		if err != nil || parser.Decode(&request) != nil || request["op"] == "stop" {
			return
		}
		reply := answer(request)
		reply["seq"] = request["seq"]
		out.Encode(reply)
	}
}
