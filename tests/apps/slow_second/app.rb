# One thread, one request at a time, 20 ms asleep in each. The second instance sleeps four times as long.
require "socket"

server = TCPServer.new("127.0.0.1", Integer(ENV.fetch("PORT")))
pause = ENV["TENFOLD_INSTANCE"] == "2" ? 0.08 : 0.02
loop do
  client = server.accept
  line = client.gets
  line = client.gets until line.nil? || line == "\r\n"
  unless line.nil?
    sleep pause
    client.write "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"
  end
  client.close
rescue SystemCallError
  client&.close
end
