package main

import (
	"math/rand/v2"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

const (
	// As patient as the users are.
	timeout = 30 * time.Second
	// Requests that may be under way at once: more than any queue in front of an app holds.
	mostWorkers = 4096
)

// Arrivals come at a rate, and wait for nobody.
type arrivals struct {
	rate float64
}

func (a arrivals) run(url string, lasting time.Duration) []answer {
	attacker := vegeta.NewAttacker(
		vegeta.Timeout(timeout),
		vegeta.Workers(16),
		vegeta.MaxWorkers(mostWorkers),
		vegeta.Connections(mostWorkers),
		vegeta.HTTP2(false),
	)
	targeter := vegeta.NewStaticTargeter(vegeta.Target{Method: "GET", URL: url})
	began := time.Now()
	var answers []answer
	for result := range attacker.Attack(targeter, &poisson{rate: a.rate}, lasting, "") {
		sent := result.Timestamp.Sub(began)
		answers = append(answers, answer{sent, sent + result.Latency, result.Error != ""})
	}
	return answers
}

// Poisson spaces hits by exponential gaps. vegeta asks it once for each hit.
type poisson struct {
	rate float64
	due  time.Duration
}

func (p *poisson) Pace(elapsed time.Duration, _ uint64) (time.Duration, bool) {
	p.due += time.Duration(rand.ExpFloat64() / p.rate * float64(time.Second))
	return max(p.due-elapsed, 0), false
}

func (p *poisson) Rate(time.Duration) float64 { return p.rate }
