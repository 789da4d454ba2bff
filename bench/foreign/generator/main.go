// Drives a server as its users would, for the truth beside which plans are put. It shares no code with
// Tenfold's own generator. Arrivals at a rate are vegeta's, spaced by chance (Poisson). Users who wait
// for each answer and think are a loop of their own here, on net/http.
//
//	generator -url URL (-rate R | -users N -think T) -warm T -measure T
//
// It sends for the time of -warm, then counts for that of -measure, and writes one line of JSON.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"time"
)

// An answer is one request and what came of it. Times are since the load began.
type answer struct {
	sent, ended time.Duration
	failed      bool
}

// A load sends until its time is over and returns every answer.
type load interface {
	run(url string, lasting time.Duration) []answer
}

// A summary is what is written. Times are in milliseconds, rates a second, CPU in cores.
type summary struct {
	Seconds        float64  `json:"seconds"`
	Requests       int      `json:"requests"`
	Errors         int      `json:"errors"`
	Throughput     float64  `json:"throughput"`
	Offered        float64  `json:"offered"`
	P50            *float64 `json:"p50_ms"`
	P95            *float64 `json:"p95_ms"`
	P99            *float64 `json:"p99_ms"`
	GeneratorCores float64  `json:"generator_cores"`
	WaitingCores   float64  `json:"waiting_cores"`
	IdleCores      float64  `json:"idle_cores"`
}

func main() {
	url := flag.String("url", "", "what is asked for")
	rate := flag.Float64("rate", 0, "requests a second that wait for nobody")
	count := flag.Int("users", 0, "users who wait for each answer")
	think := flag.Duration("think", 0, "pause of a user between an answer and the next request")
	warm := flag.Duration("warm", 0, "time before anything counts")
	measure := flag.Duration("measure", 10*time.Second, "time that counts")
	flag.Parse()

	var chosen load
	switch {
	case *rate > 0 && *count == 0:
		chosen = arrivals{rate: *rate}
	case *count > 0 && *rate == 0:
		chosen = users{count: *count, think: *think}
	}
	if chosen == nil || *url == "" || *measure <= 0 {
		fmt.Fprintln(os.Stderr, "generator: give -url, and -rate or -users; see the top of main.go")
		os.Exit(2)
	}
	cpu := watch(*warm, *measure)
	answers := chosen.run(*url, *warm+*measure)
	if err := json.NewEncoder(os.Stdout).Encode(summarize(answers, *warm, *measure, <-cpu)); err != nil {
		fmt.Fprintln(os.Stderr, "generator:", err)
		os.Exit(1)
	}
}

// Throughput is of the good answers that ended in the window; everything else is of the requests that
// were sent in it, so that an answer that comes late is not forgotten.
func summarize(answers []answer, warm, measure time.Duration, cpu usage) summary {
	s := summary{
		Seconds:        measure.Seconds(),
		GeneratorCores: cpu.generator,
		WaitingCores:   cpu.waiting,
		IdleCores:      cpu.idle,
	}
	counts := func(at time.Duration) bool { return warm <= at && at < warm+measure }
	ended := 0
	var took []float64
	for _, a := range answers {
		if !a.failed && counts(a.ended) {
			ended++
		}
		if !counts(a.sent) {
			continue
		}
		s.Requests++
		if a.failed {
			s.Errors++
		} else {
			took = append(took, float64(a.ended-a.sent)/float64(time.Millisecond))
		}
	}
	s.Throughput = float64(ended) / s.Seconds
	s.Offered = float64(s.Requests) / s.Seconds
	sort.Float64s(took)
	s.P50, s.P95, s.P99 = percentile(took, 50), percentile(took, 95), percentile(took, 99)
	return s
}

// The nearest rank; nil of nothing.
func percentile(ordered []float64, percent int) *float64 {
	if len(ordered) == 0 {
		return nil
	}
	rank := (len(ordered)*percent + 99) / 100
	return &ordered[rank-1]
}
