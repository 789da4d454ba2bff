package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Usage is in cores, over the time that counts.
type usage struct {
	// Of this program.
	generator float64
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
		began, own, idle := time.Now(), ownSeconds(), idleSeconds()
		time.Sleep(measure)
		seconds := time.Since(began).Seconds()
		told <- usage{(ownSeconds() - own) / seconds, (idleSeconds() - idle) / seconds}
	}()
	return told
}

func ownSeconds() float64 {
	var used syscall.Rusage
	// It fails for no one who asks of himself.
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
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
