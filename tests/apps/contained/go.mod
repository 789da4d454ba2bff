module contained

go 1.24
