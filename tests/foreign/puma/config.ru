# frozen_string_literal: true

# A timetable: asks the operator's service for delays, and renders the departures.
require "sinatra/base"

class Timetable < Sinatra::Base
  set :views, File.join(__dir__, "views")
  set :protection, false

  PLACES = %w[Aachen Basel Celje Delft Essen Fulda Graz Halle].freeze

  def delays
    sleep 0.02 # a call over the network
    Hash.new { |minutes, line| minutes[line] = line * 7 % 5 }
  end

  get "/" do
    from = params.fetch("from", "Graz")
    late = delays
    departures = Array.new(30) { |i| { line: i + 1, to: PLACES[i % 8], at: i * 11 % 60, late: late[i] } }
    @departures = departures.reject { |each| each[:to] == from }.sort_by { |each| each[:at] }
    erb :timetable
  end
end

run Timetable
