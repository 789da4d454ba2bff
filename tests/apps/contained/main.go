// The app of the stories about containers: one static file, so that its image needs nothing else.
//
// It serves at PORT: `/` takes about a millisecond of CPU time and names the instance, `/light` takes next to none, and
// `/hog` takes memory until somebody ends it, and `/through` asks the server at UPSTREAM. `app exit` ends at once, `app
// deaf` never listens, and `app healthy` says whether it serves.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

var hoard [][]byte

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "exit":
			fmt.Println("no settings found")
			os.Exit(3)
		case "deaf":
			fmt.Println("listening nowhere")
			time.Sleep(time.Hour)
		case "healthy":
			if _, err := http.Get("http://127.0.0.1:" + os.Getenv("PORT") + "/light"); err != nil {
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	http.HandleFunc("/hog", func(w http.ResponseWriter, _ *http.Request) {
		for {
			block := make([]byte, 10_000_000)
			for i := range block {
				block[i] = 1
			}
			hoard = append(hoard, block)
		}
	})
	http.HandleFunc("/through", func(w http.ResponseWriter, _ *http.Request) {
		answer, err := http.Get("http://" + os.Getenv("UPSTREAM") + "/")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		io.Copy(w, answer.Body)
	})
	http.HandleFunc("/light", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "here")
	})
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		sum := 0
		for i := range 1_000_000 {
			sum += i * i
		}
		fmt.Fprintf(w, "instance %s at %s, %s %d\n",
			os.Getenv("TENFOLD_INSTANCE"), os.Getenv("PORT"), os.Getenv("COLOUR"), sum%2)
	})
	if err := http.ListenAndServe(":"+os.Getenv("PORT"), nil); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
