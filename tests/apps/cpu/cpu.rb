# Computes for each request, one at a time: an instance fills one core, two fill two.
require "socket"

STEPS = Integer(ENV.fetch("STEPS", "400000"))

def compute
  sum = 0
  i = 0
  while i < STEPS
    sum = (sum + i * i) & 0xffff_ffff
    i += 1
  end
  sum
end

server = TCPServer.new("127.0.0.1", Integer(ENV.fetch("PORT")))
server.listen(512)
loop do
  client = server.accept
  # A probe of the port says nothing and leaves.
  unless client.gets("\r\n\r\n").nil?
    body = "#{compute}\n"
    client.write("HTTP/1.1 200 OK\r\nContent-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n#{body}")
  end
  client.close
rescue SystemCallError
  client&.close
end
