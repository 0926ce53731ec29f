// Go's libraries as peers of the benchmarks. One JSON object per line: what to do with which log, how often.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// Request says what is to be done.
type Request struct {
	Work    string `json:"work"`
	Path    string `json:"path"`
	How     string `json:"how"`
	Threads int    `json:"threads"`
	Passes  int    `json:"passes"`
	Check   bool   `json:"check"`
}

type object = map[string]any

// Work goes from one end of a part of the log to the other.
type Work func(part []byte, check bool) (Contents, error)

var works = map[string]Work{
	"scan loop": scan, "crc loop": crc, "visit franz-go": visitFranz, "visit kafka-go": visitSegmentio, "visit sarama": visitSarama,
}

// What is kept for the next pass.
var (
	knownPath string
	knownData []byte
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var request Request
		answer := object{}
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			answer["error"] = err.Error()
		} else if found, err := answerTo(request); err != nil {
			answer["error"] = err.Error()
		} else {
			answer = found
		}
		line, _ := json.Marshal(answer)
		fmt.Println(string(line))
	}
}

func answerTo(request Request) (object, error) {
	if request.Work == "hello" {
		return object{"version": versions()}, nil
	}
	work, known := works[request.Work+" "+request.How]
	if !known {
		return nil, fmt.Errorf("no such work")
	}
	if knownPath != request.Path {
		data, err := mapped(request.Path)
		if err != nil {
			return nil, err
		}
		knownPath, knownData = request.Path, data
	}
	parts, seconds, found := split(knownData, max(1, request.Threads)), []float64{}, []Contents{}
	for range max(1, request.Passes) {
		start := time.Now()
		done, err := each(parts, work, request.Check)
		if err != nil {
			return nil, err
		}
		seconds, found = append(seconds, time.Since(start).Seconds()), done
	}
	told := [][2]any{}
	for _, part := range found {
		told = append(told, [2]any{strconv.FormatUint(part.number, 10), part.count})
	}
	return object{"seconds": seconds, "parts": told}, nil
}

func each(parts [][]byte, work Work, check bool) ([]Contents, error) {
	found, failed := make([]Contents, len(parts)), make([]error, len(parts))
	var group sync.WaitGroup
	for i, part := range parts[1:] {
		group.Add(1)
		go func() {
			defer group.Done()
			found[i+1], failed[i+1] = work(part, check)
		}()
	}
	found[0], failed[0] = work(parts[0], check)
	group.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}
