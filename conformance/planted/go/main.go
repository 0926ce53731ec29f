// Speaks the adapter protocol for the decoder beside this file.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
)

const defaultLimit = 16 << 20

type object = map[string]any

type request struct {
	Seq                int    `json:"seq"`
	Op                 string `json:"op"`
	Data               string `json:"data"`
	BaseOffset         any    `json:"baseOffset"`
	IndexIntervalBytes *int   `json:"indexIntervalBytes"`
	Options            struct {
		Crc   *bool `json:"crc"`
		Limit *int  `json:"limit"`
	} `json:"options"`
}

func hello() object {
	return object{"ok": true, "protocol": 1,
		"implementation": object{"name": "planted-go", "version": "1", "language": "Go"},
		"ops":            []string{"decode", "index"},
		"features": object{"magic": []int{0, 1, 2}, "codec": []string{"none", "gzip", "snappy", "lz4"}, "crc": true,
			"control": "surfaced", "headers": "ordered", "bytesKeys": true, "partialTail": true,
			"batchMeta": []string{"position", "sizeInBytes", "magic", "baseOffset", "lastOffset", "nextOffset", "crc",
				"codec", "timestampType", "maxTimestamp", "deleteHorizonMs", "recordsCount", "producerId", "producerEpoch",
				"baseSequence", "lastSequence", "isTransactional", "isControl", "partitionLeaderEpoch", "isValid"}}}
}

func answer(asked request) (reply object) {
	batches := []object{}
	defer func() {
		if reason := recover(); reason != nil {
			message, isRefused := reason.(refused)
			if !isRefused {
				panic(reason)
			}
			reply = object{"ok": false, "reject": object{"class": "other", "message": string(message)}}
			if asked.Op == "decode" {
				reply["batches"] = batches
			}
		}
	}()
	data, _ := hex.DecodeString(asked.Data)
	switch asked.Op {
	case "hello":
		return hello()
	case "index":
		base, _ := strconv.ParseInt(fmt.Sprint(asked.BaseOffset), 10, 64)
		files := object{}
		for suffix, content := range indexes(data, base, either(asked.IndexIntervalBytes, 4096)) {
			files[suffix] = hex.EncodeToString(content)
		}
		return object{"ok": true, "files": files}
	}
	end := decode(data, either(asked.Options.Crc, true), either(asked.Options.Limit, defaultLimit),
		func(found batch) { batches = append(batches, asObject(found)) })
	reply = object{"ok": true, "batches": batches, "consumed": end, "tail": nil}
	if end < len(data) {
		reply["tail"] = object{"at": end}
	}
	return reply
}

func either[T any](given *T, otherwise T) T {
	if given == nil {
		return otherwise
	}
	return *given
}

func asObject(b batch) object {
	records := []object{}
	for _, r := range b.records {
		pairs := [][2]any{}
		for _, one := range r.headers {
			pairs = append(pairs, [2]any{text(one.key), text(one.value)})
		}
		records = append(records, object{"offset": number(r.offset), "timestamp": number(r.timestamp),
			"key": text(r.key), "value": text(r.value), "headers": pairs})
	}
	found := object{"position": b.position, "sizeInBytes": b.size, "magic": b.magic, "baseOffset": number(b.baseOffset),
		"lastOffset": number(b.lastOffset), "nextOffset": number(b.lastOffset + 1), "crc": b.crc,
		"codec": codecs[b.attributes&7], "timestampType": b.timestampType, "maxTimestamp": number(b.maxTimestamp),
		"deleteHorizonMs": nil, "recordsCount": nil, "producerId": number(b.producer), "producerEpoch": b.producerEpoch,
		"baseSequence": b.baseSequence, "lastSequence": b.lastSequence, "isTransactional": b.isTransactional,
		"isControl": b.isControl, "partitionLeaderEpoch": b.epoch, "isValid": b.isValid, "records": records}
	if b.hasDeleteHorizon {
		found["deleteHorizonMs"] = number(b.baseTimestamp)
	}
	if b.hasCount {
		found["recordsCount"] = b.count
	}
	return found
}

func number(value int64) string { return strconv.FormatInt(value, 10) }

func text(data []byte) any {
	if data == nil {
		return nil
	}
	return hex.EncodeToString(data)
}

func main() {
	out, in := json.NewEncoder(os.Stdout), bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		asked := request{}
		if err != nil || json.Unmarshal(line, &asked) != nil || asked.Op == "stop" {
			return
		}
		reply := answer(asked)
		reply["seq"] = asked.Seq
		if out.Encode(reply) != nil {
			return
		}
	}
}
