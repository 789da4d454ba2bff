#!/usr/bin/env ruby
# frozen_string_literal: true

# FibScale: a form that computes Fibonacci numbers, one request at a time.
#
#   ruby fibscale.rb [COLOUR]      COLOUR, a whole number, colours the navigation bar
#
# FIBSCALE_PORT (or PORT; 4567 unless set) is the port, FIBSCALE_DELAY the seconds that each
# computation sleeps (0 unless set; fractions allowed), as an app does that waits for a remote one.

require "erb"
require "puma"
require "puma/configuration"
require "puma/launcher"
require "sinatra/base"

# What a visitor asked for, checked.
class Computation
  Invalid = Class.new(StandardError)

  # Beyond these a single request would take minutes: the recursion doubles its work about every
  # one and a half steps.
  MOST = { "iterative" => 10_000, "recursive" => 40 }.freeze
  LONGEST_DELAY = 60.0

  def initialize(fib:, algorithm:, delay:)
    @algorithm = algorithm.to_s
    most = MOST.fetch(@algorithm) { raise Invalid, "Choose the iterative or the recursive algorithm." }
    @number = Integer(fib.to_s, 10, exception: false)
    unless @number&.between?(0, most)
      raise Invalid, "The #{@algorithm} algorithm takes a whole number from 0 to #{most}."
    end

    @delay = Float(delay.to_s, exception: false)
    return if @delay&.between?(0, LONGEST_DELAY)

    raise Invalid, "The delay is a number of seconds from 0 to #{LONGEST_DELAY.to_i}."
  end

  # The sentence that answers the form.
  def run
    start = clock
    sleep(@delay)
    value = @algorithm == "recursive" ? recursive(@number) : iterative
    format("fib(%d) = %d, %s, in %.3f s", @number, value, @algorithm, clock - start)
  end

  private

  def iterative
    current = 0
    following = 1
    @number.times { current, following = following, current + following }
    current
  end

  def recursive(number)
    number < 2 ? number : recursive(number - 1) + recursive(number - 2)
  end

  def clock
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

class FibScale < Sinatra::Base
  COLOURS = %w[#33475b #1f7a5c #a8442a #5b3f8c #8a6d1b #1d6f94 #9c2f66 #4d5d23 #6b4226 #2f3e9e].freeze

  set :environment, :production
  # A balancer that rewrites Host would make a browser's Origin look foreign. There is no session
  # here that a foreign page could use.
  set :protection, except: :http_origin
  set :delay, 0.0
  set :colour, COLOURS.first
  set :page, ERB.new(DATA.read, trim_mode: "-")

  get "/" do
    page
  end

  # Invalid input is answered with 200 and a message, as a form does for people: whoever tests this
  # must read the body.
  post "/" do
    delay = params.fetch("delay", settings.delay)
    page(result: Computation.new(fib: params["fib"], algorithm: params["algorithm"], delay: delay).run)
  rescue Computation::Invalid => e
    page(problem: e.message)
  end

  private

  def page(result: nil, problem: nil)
    settings.page.result(binding)
  end

  def escaped(text)
    ERB::Util.html_escape(text)
  end
end

def refuse(name, text, expected)
  abort "fibscale: #{name} is #{text.inspect}; set it to #{expected}"
end

port_name = %w[FIBSCALE_PORT PORT].find { |name| ENV.key?(name) }
port_text = ENV.fetch(port_name.to_s, "4567")
port = Integer(port_text, 10, exception: false)
refuse(port_name, port_text, "a port from 1 to 65535") unless port&.between?(1, 65_535)

delay_text = ENV.fetch("FIBSCALE_DELAY", "0")
delay = Float(delay_text, exception: false)
unless delay&.between?(0, Computation::LONGEST_DELAY)
  refuse("FIBSCALE_DELAY", delay_text, "seconds from 0 to #{Computation::LONGEST_DELAY.to_i}")
end

colour_text = ARGV.fetch(0, "0")
colour = Integer(colour_text, 10, exception: false)
refuse("the colour", colour_text, "a whole number") unless colour

FibScale.set :delay, delay
FibScale.set :colour, FibScale::COLOURS[colour % FibScale::COLOURS.size]

# One process with one thread: one request at a time. "-" keeps Puma from looking for a
# configuration file where the program happens to be started.
#
# Without its queue of requests Puma closes each connection after the answer. With it, the only
# thread waits 0.2 s on a connection kept alive before it turns to the next: more than the whole
# work of a short request, and nothing that this app is meant to show.
configuration = Puma::Configuration.new(config_files: ["-"]) do |puma|
  puma.bind "tcp://#{ENV.fetch("HOST", "127.0.0.1")}:#{port}"
  puma.threads 1, 1
  puma.workers 0
  puma.queue_requests false
  # Then a client that connects and says nothing holds the thread: for this many seconds at most.
  puma.first_data_timeout 2
  puma.environment "production"
  puma.app FibScale
end

begin
  Puma::Launcher.new(configuration).run
rescue Errno::EADDRINUSE
  abort "fibscale: port #{port} is in use; choose another with FIBSCALE_PORT"
end

__END__
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>FibScale</title>
<style>
  body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: #222; }
  nav { background: <%= settings.colour %>; color: #fff; padding: .8rem 1.5rem; font-weight: 600; }
  main { max-width: 34rem; margin: 2rem auto; padding: 0 1.5rem; }
  label { display: block; margin: 1rem 0 .2rem; }
  input, select, button { font: inherit; padding: .4rem .6rem; width: 100%; box-sizing: border-box; }
  button { margin-top: 1.5rem; }
  output, .problem { display: block; overflow-wrap: anywhere; margin-top: 1.5rem; }
  .problem { color: #a31515; }
</style>
</head>
<body>
<nav>FibScale</nav>
<main>
<form method="post" action="/">
  <label for="fib">Number</label>
  <input id="fib" name="fib" inputmode="numeric" required value="<%= escaped(params["fib"] || 100) %>">
  <label for="algorithm">Algorithm</label>
  <select id="algorithm" name="algorithm">
  <%- Computation::MOST.each_key do |name| -%>
    <option<%= " selected" if params["algorithm"] == name %>><%= name %></option>
  <%- end -%>
  </select>
  <label for="delay">Delay in seconds</label>
  <input id="delay" name="delay" inputmode="decimal" value="<%= escaped(params["delay"] || settings.delay) %>">
  <button>Compute</button>
</form>
<%- if problem -%>
<p class="problem" role="alert"><%= escaped(problem) %></p>
<%- elsif result -%>
<output><%= escaped(result) %></output>
<%- end -%>
</main>
</body>
</html>
