// A search in the shop's database, on as many cores as there are.
package main

import (
	"database/sql"
	"encoding/json"
	"log"
	"net/http"
	"os"

	_ "modernc.org/sqlite"
)

const search = `SELECT id, name, category, cents FROM product
	WHERE name LIKE '%' || ? || '%' AND stock > 0 ORDER BY cents LIMIT 40`

const count = `SELECT category, count(*) FROM product
	WHERE name LIKE '%' || ? || '%' AND stock > 0 GROUP BY category`

type answer struct {
	Found  []product      `json:"found"`
	Counts map[string]int `json:"counts"`
}

type product struct {
	ID       int    `json:"id"`
	Name     string `json:"name"`
	Category string `json:"category"`
	Cents    int    `json:"cents"`
}

func find(shop *sql.DB, words string) ([]product, error) {
	rows, err := shop.Query(search, words)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := []product{}
	for rows.Next() {
		var p product
		if err := rows.Scan(&p.ID, &p.Name, &p.Category, &p.Cents); err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	return found, rows.Err()
}

func counts(shop *sql.DB, words string) (map[string]int, error) {
	rows, err := shop.Query(count, words)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counted := map[string]int{}
	for rows.Next() {
		var category string
		var products int
		if err := rows.Scan(&category, &products); err != nil {
			return nil, err
		}
		counted[category] = products
	}
	return counted, rows.Err()
}

func main() {
	shop, err := sql.Open("sqlite", "file:../../../.deps/shop.db?mode=ro")
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("GET /search", func(w http.ResponseWriter, r *http.Request) {
		words := r.FormValue("q")
		found, err := find(shop, words)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		counted, err := counts(shop, words)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer{found, counted})
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
