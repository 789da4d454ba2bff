// A request computes for a few milliseconds and waits for 15, one at a time: instances overlap their
// waits until their computing fills the cores.
package main

import (
	"crypto/sha256"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync"
	"time"
)

// About 6 ms on a core of today.
const rounds = 50_000

var turn sync.Mutex

func answer(w http.ResponseWriter, _ *http.Request) {
	turn.Lock()
	defer turn.Unlock()
	sum := sha256.Sum256(nil)
	for range rounds {
		sum = sha256.Sum256(sum[:])
	}
	time.Sleep(15 * time.Millisecond)
	fmt.Fprintf(w, "%x\n", sum)
}

func main() {
	http.HandleFunc("/", answer)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
