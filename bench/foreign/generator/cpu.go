package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Usage is in cores, over the time that counts.
type usage struct {
	// Of this program.
	generator float64
	// For which threads of this program were ready to run and had no core.
	waiting float64
	// What nobody used of the machine.
	idle float64
}

// Clock ticks of /proc/stat a second, on every Linux.
const ticks = 100

// Watch tells what was used from the end of warm on, for as long as measure.
func watch(warm, measure time.Duration) <-chan usage {
	told := make(chan usage, 1)
	go func() {
		time.Sleep(warm)
		began, own, waited, idle := time.Now(), ownSeconds(), waitedSeconds(), idleSeconds()
		time.Sleep(measure)
		seconds := time.Since(began).Seconds()
		told <- usage{
			generator: (ownSeconds() - own) / seconds,
			waiting:   (waitedSeconds() - waited) / seconds,
			idle:      (idleSeconds() - idle) / seconds,
		}
	}()
	return told
}

func ownSeconds() float64 {
	var used syscall.Rusage
	// It fails for no one who asks of himself.
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}

// Of all threads. The runtime keeps those that it has started.
func waitedSeconds() float64 {
	files, _ := filepath.Glob("/proc/self/task/*/schedstat")
	var waited time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// Nanoseconds on a core, nanoseconds of waiting for one, and turns.
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			nanoseconds, _ := strconv.ParseInt(fields[1], 10, 64)
			waited += time.Duration(nanoseconds)
		}
	}
	return waited.Seconds()
}

// Idle and waiting for a disk, of all cores.
func idleSeconds() float64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	idle, _ := strconv.ParseFloat(fields[4], 64)
	waiting, _ := strconv.ParseFloat(fields[5], 64)
	return (idle + waiting) / ticks
}
