-- wrk: every request uploads 1 MB.
wrk.method = "POST"
wrk.body = string.rep("x", 1048576)
wrk.headers["Content-Type"] = "application/octet-stream"
