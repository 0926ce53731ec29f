// Tasks are told as JSON on standard input, and answered as JSON on standard output.
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

const patience = 100 * time.Second

type Task struct {
	Kind, Topic, Isolation, Group, Prefix string
	End, Last                             int64
	Timestamps                            []int64
	Ends                                  []int64
	Count                                 int
	Idempotent                            bool
}

type Row []any

func hexed(data []byte) any {
	if data == nil {
		return nil
	}
	return hex.EncodeToString(data)
}

// Of a record without a timestamp, libraries make different things.
func millis(at time.Time) int64 {
	if at.IsZero() {
		return -1
	}
	return at.UnixMilli()
}

// Some libraries tell the offset of a timestamp, and not which timestamp stands there; nothing is below 0.
func offsetsAt(timestamps []int64, ask func(int64) (int64, error)) (any, error) {
	found := []any{}
	for _, timestamp := range timestamps {
		offset, err := ask(timestamp)
		if err != nil {
			return nil, err
		}
		if offset < 0 {
			found = append(found, nil)
		} else {
			found = append(found, []any{nil, offset})
		}
	}
	return found, nil
}

func run(carryOut map[string]func(context.Context, string, Task) (any, error)) {
	var told struct {
		Port  int
		Tasks []Task
	}
	if err := json.NewDecoder(os.Stdin).Decode(&told); err != nil {
		panic(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", told.Port)
	answers := make([]any, len(told.Tasks))
	free, done := make(chan bool, 8), sync.WaitGroup{}
	for number, task := range told.Tasks {
		done.Add(1)
		free <- true
		go func() {
			defer func() { <-free; done.Done() }()
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			answer, err := carryOut[task.Kind](ctx, address, task)
			if err != nil {
				answer = err.Error()
			}
			answers[number] = answer
		}()
	}
	done.Wait()
	json.NewEncoder(os.Stdout).Encode(answers)
}
