package main

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Users wait for each answer, then think for a fixed time. Each has a connection of its own.
type users struct {
	count int
	think time.Duration
}

// Everybody at once would be an artefact: their first requests are spread over one pause and this.
const entrance = 100 * time.Millisecond

func (u users) run(url string, lasting time.Duration) []answer {
	began := time.Now()
	answers := make([][]answer, u.count)
	var all sync.WaitGroup
	for i := range answers {
		all.Add(1)
		go func() {
			defer all.Done()
			time.Sleep((u.think + entrance) * time.Duration(i) / time.Duration(u.count))
			answers[i] = u.one(url, began, lasting)
		}()
	}
	all.Wait()
	return slices.Concat(answers...)
}

func (u users) one(url string, began time.Time, lasting time.Duration) []answer {
	client := http.Client{Transport: &http.Transport{}, Timeout: timeout}
	defer client.CloseIdleConnections()
	var answers []answer
	for time.Since(began) < lasting {
		sent := time.Since(began)
		failed := get(&client, url) != nil
		answers = append(answers, answer{sent, time.Since(began), failed})
		time.Sleep(u.think)
	}
	return answers
}

func get(client *http.Client, url string) error {
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode >= 400 {
		return errors.New(response.Status)
	}
	return nil
}
