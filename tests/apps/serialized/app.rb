# One thread, one request at a time, 20 ms asleep in each.
require "socket"

server = TCPServer.new("127.0.0.1", Integer(ENV.fetch("PORT")))
loop do
  client = server.accept
  line = client.gets
  line = client.gets until line.nil? || line == "\r\n"
  unless line.nil?
    sleep 0.02
    client.write "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"
  end
  client.close
rescue SystemCallError
  client&.close
end
