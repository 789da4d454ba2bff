// Written by the test `bindings_are_up_to_date` of crates/tenfold: run it with UPDATE_BINDINGS=1 after a change.

export type Action = "scale" | "reload" | "restart" | "drain" | "resume" | "output" | "start_load" | "repeat_load" | "edit_load" | "stop_load" | "reset_load" | "start_measurement" | "stop_measurement";

export type Advice = { growth: Growth, 
/**
 * One sentence.
 */
reason: string, };

export type ApiError = { 
/**
 * As the status line says it.
 */
status: number, 
/**
 * What happened and what to do, in a sentence.
 */
error: string, };

export type App = { name: string, 
/**
 * How the balancer picks an instance.
 */
policy: string, 
/**
 * Requests that may wait.
 */
queue_length: number, };

export type Assumption = "equal_instances";

export type Balanced = { throughput: number, p50_ms: number | null, p95_ms: number | null, p99_ms: number | null, 
/**
 * CPU of the balancer in one request (us).
 */
cpu_us: number | null, 
/**
 * Whether nothing speaks against the measurement.
 */
valid: boolean, };

export type Balancer = { 
/**
 * nginx or HAProxy.
 */
program: string, version: string, 
/**
 * How it spreads requests, in its own words.
 */
policy: string, threads: number, 
/**
 * What it costs, where an instance was measured.
 */
cost: BalancingCost | null, };

export type BalancingCost = { 
/**
 * The count at which it was measured: the answer's, or else the nearest.
 */
instances: number, behind: Balanced, 
/**
 * Behind Tenfold's own queue, if there was time.
 */
built_in: Balanced | null, 
/**
 * All of it in a sentence.
 */
text: string, };

export type Change = "second_instance" | "one_core_less" | "second_generator" | "no_balancer";

export type Check = { name: string, measured: string, met: boolean, };

export type Comparison = { schema: string, 
/**
 * The command that measures it again, without secrets. Earlier documents do not tell.
 */
invocation?: Array<string>, a: Side, b: Side, method: Method, 
/**
 * That no interval misses its truth.
 */
confidence: number, metrics: Array<Metric>, 
/**
 * Doubts about the comparison.
 */
notes: Array<string>, };

export type Connections = { opened: number, 
/**
 * Kept ones that the server had closed and that were opened again, without an error.
 */
reopened: number, };

export type Corrected = { p50: number, p95: number, p99: number, };

export type Cost = { origin: Origin, needs: Needs, 
/**
 * Price of the balancer a month, where it is known.
 */
balancer_month: number | null, 
/**
 * Cheapest first: those with cores of one's own, then others.
 */
offers: Array<Offer>, };

export type CostStart = { 
/**
 * Sizes in cores of one instance, smallest first.
 */
cpus: Array<number>, 
/**
 * Memory of each size in MB (10^6 bytes), or one value for all.
 */
memory_mb: Array<number>, 
/**
 * Numbers of instances of the smallest size.
 */
instances: Array<number>, 
/**
 * Requests of each measurement.
 */
requests?: number, 
/**
 * Requests in flight at once.
 */
concurrency?: number, 
/**
 * The goal: 95 % of the answers come within so many milliseconds.
 */
p95_ms?: number, 
/**
 * `/` without it.
 */
path?: string, };

export type CpuCores = { app: number | null, balancer: number | null, generator: number | null, machine: number | null, 
/**
 * Cores that a virtual machine's host gave to others instead (steal).
 */
steal?: number | null, };

export type CpuKind = "dedicated" | "shared" | "burstable";

export type Current = { rate: number, failure_rate: number, };

export type Define = { 
/**
 * All of them, if they have changed.
 */
apps: Array<App> | null, 
/**
 * All that can be asked for, if that has changed.
 */
actions: Array<Action> | null, 
/**
 * Those that came or have changed.
 */
instances: Array<Instance>, 
/**
 * Ids of those that went.
 */
gone: Array<number>, };

export type End = { time_ms: number, 
/**
 * A sentence.
 */
text: string, 
/**
 * Its number in the history, if it is there.
 */
run: number | null, 
/**
 * What a report of it would hold.
 */
report: LiveReport | null, };

export type EventName = "hello" | "reset" | "define" | "tick" | "rows" | "mark" | "load" | "plan" | "measurement" | "end";

export type Fact = { name: string, value: string, };

export type Failure = { method: string, name: string, 
/**
 * Its kind, by a name that stays.
 */
error: string, 
/**
 * The answer's status, if there was a whole one. Earlier documents do not tell.
 */
status?: number, occurrences: number, 
/**
 * RFC 3339.
 */
first_seen: string | null, last_seen: string | null, };

export type Finding = { kind: Kind, 
/**
 * How clearly the numbers show it: 0.5 at the threshold, towards 1 far beyond it.
 */
confidence: number, 
/**
 * The numbers, in a sentence.
 */
evidence: string, 
/**
 * What to do about it, in a sentence.
 */
remedy: string, 
/**
 * What each instance did, where they differ.
 */
by_instance?: Array<InstanceFigures>, };

export type Goal = { rate: number | null, users: number | null, think_ms: number | null, p95_ms: number | null, p99_ms: number | null, max_error_ratio: number, };

export type Growth = "bigger" | "more" | "either" | "neither" | "unknown";

export type Hello = { schema: string, version: string, boot: string, 
/**
 * Id of the newest event.
 */
sequence: number, tick_ms: number, };

export type Histograms = { response: string | null, service: string | null, first_byte: string | null, connect: string | null, };

export type IdleConnections = "harmless" | "blocking" | "closed";

export type Instance = { 
/**
 * A restarted instance keeps its name and gets another id.
 */
id: number, app: string, name: string, 
/**
 * What its user calls it, where that is another name: the unit of a template.
 */
display_name?: string, address: string, pid: number | null, 
/**
 * Milliseconds since 1970.
 */
started_ms: number | null, 
/**
 * How it died last, or why it gets no requests, in a sentence.
 */
warning: string | null, };

export type InstanceCapacity = { 
/**
 * The most that one instance completed (1/s).
 */
one: number, 
/**
 * What two completed together (1/s), where they were measured.
 */
two: number | null, 
/**
 * Whether a second instance completes more, where that is known.
 */
second_helps: boolean | null, limited_by: Kind, 
/**
 * All of it in words.
 */
reason: string, };

export type InstanceColumns = { id: number, time_ms: Array<number>, in_flight: Array<number | null>, requests: Array<number | null>, service_mean: Array<number | null>, cpu: Array<number | null>, memory: Array<number | null>, };

export type InstanceFigures = { 
/**
 * Its number, from 1.
 */
instance: number, requests: number, errors: number, 
/**
 * Mean time of a request in it, without the queue.
 */
service_ms: number, 
/**
 * CPU time of a request, where it is known.
 */
cpu_ms: number | null, };

export type InstanceHistory = { instances: Array<InstanceColumns>, };

export type InstanceOutput = { name: string, 
/**
 * The last 200 lines, oldest first, without control characters.
 */
lines: Array<string>, };

export type InstanceState = "starting" | "ready" | "draining" | "drained" | "stopping" | "backoff" | "down" | "probing";

export type Judgement = "too_early" | "valid" | "suspect" | "invalid";

export type KeepAlive = "on" | "off";

export type Kind = "failing" | "uneven_instances" | "generator_bound" | "balancer_bound" | "cpu_throttled" | "memory_pressure" | "connection_limited" | "oversubscribed" | "shared_dependency" | "serialized" | "cpu_bound" | "waiting" | "headroom";

export type Lag = { p50: number | null, p99: number | null, max: number | null, };

export type LatencyCurve = { name: string, 
/**
 * Percentile and milliseconds, rising.
 */
points: Array<[number, number]>, };

export type Limit = "instances" | "balancer" | "generator" | "machine";

export type Limited = { 
/**
 * Quota in cores.
 */
cpus: number | null, 
/**
 * Share of the quota's periods in which it was used up and the instance stood still.
 */
throttled_ratio: number | null, 
/**
 * Seconds that it stood still for it, a second; several cores' waiting adds up.
 */
throttled_cores: number | null, memory_bytes: number | null, 
/**
 * By all processes that the limit holds, page cache included.
 */
memory_used_bytes: number | null, 
/**
 * Times a second that the memory limit was met, so that something had to be given back first.
 */
memory_hits: number | null, };

export type Limits = { cpus: number | null, memory_bytes: number | null, };

export type LiveHistory = { boot: string, 
/**
 * Id of the newest event that is in it.
 */
sequence: number, series: Array<Series>, 
/**
 * Ten seconds each, before those of `recent`.
 */
old: Tier, 
/**
 * Single ticks of the last ten minutes.
 */
recent: Tier, marks: Array<Mark>, };

export type LiveKind = "up" | "plan" | "load" | "balance";

export type LiveLoad = { 
/**
 * Another one for each load of this process.
 */
id: number, state: LoadPhase, method: string, 
/**
 * The URL, without credentials.
 */
target: string, 
/**
 * In words, as it was asked for.
 */
workload: string, 
/**
 * RFC 3339.
 */
started_at: string, 
/**
 * Milliseconds, without pauses.
 */
elapsed_ms: number, 
/**
 * When it ends by itself.
 */
length_ms: number | null, 
/**
 * Users who are there, and who are to be there; null with a rate.
 */
users: number | null, users_goal: number | null, 
/**
 * Users who come or go a second; null is all at once.
 */
ramp: number | null, 
/**
 * Requests a second that are asked for; null with users.
 */
rate: number | null, 
/**
 * The name of the phase of a script or shape.
 */
phase: string | null, 
/**
 * Whether it was changed while it ran.
 */
steered: boolean, requests: number, failures: number, 
/**
 * Requests a second over all of it.
 */
throughput: number, 
/**
 * Over all of it, in milliseconds.
 */
p95_ms: number | null, 
/**
 * CPU of the generator in cores.
 */
generator_cores: number, 
/**
 * Of the last ten seconds, a second.
 */
current: Current, 
/**
 * What the numbers are worth so far.
 */
verdict: Judgement, 
/**
 * A sentence each.
 */
verdict_reasons: Array<string>, 
/**
 * The goal for `p95_ms`, if there is one.
 */
goal_p95_ms: number | null, 
/**
 * Whether the goal is held so far.
 */
status: Status, 
/**
 * The same in a sentence.
 */
sentence: string, 
/**
 * Its number in the history, once it has ended.
 */
run: number | null, };

export type LiveReport = { document: Plan | Load | Sizing | Comparison, summary: Summary, };

export type LiveState = { 
/**
 * `tenfold/live/1`.
 */
schema: string, kind: LiveKind, 
/**
 * Of the program.
 */
version: string, 
/**
 * Another one after every start: what was known before is void then.
 */
boot: string, 
/**
 * Milliseconds since 1970, now.
 */
time_ms: number, 
/**
 * RFC 3339.
 */
started_at: string, 
/**
 * Id of the newest event.
 */
sequence: number, 
/**
 * Milliseconds from one tick to the next. It is 5000 while a plan measures, and 1000 otherwise.
 */
tick_ms: number, 
/**
 * What runs, in a few words: the apps or the target.
 */
name: string, 
/**
 * Where requests go.
 */
target: string | null, 
/**
 * The command that started it, without secrets.
 */
command: Array<string>, 
/**
 * The goal in a sentence, if there is one.
 */
goal: string | null, machine: Machine, 
/**
 * What can be asked for now.
 */
actions: Array<Action>, apps: Array<App>, instances: Array<Instance>, 
/**
 * What the values of a tick are, in their order.
 */
series: Array<Series>, 
/**
 * What the numbers in `rows.state` are, in their order.
 */
states: Array<InstanceState>, tick: Tick | null, 
/**
 * Of every instance.
 */
rows: Rows | null, 
/**
 * The load that runs, or ran last.
 */
load: LiveLoad | null, plan: PlanProgress | null, 
/**
 * The plan or cost that a page started, and that runs or ran last.
 */
measurement: Measurement | null, 
/**
 * The latest, oldest first.
 */
marks: Array<Mark>, 
/**
 * There once everything is over.
 */
end: End | null, };

export type Load = { schema: string, 
/**
 * The URL, without credentials.
 */
target: string, method: string, workload: string, 
/**
 * Users who were asked for. If they come one after the other, it is the most that were there at the
 * end of a window. If users arrive at a rate, it is the average number under way.
 */
concurrency: number, 
/**
 * Threads of the generator.
 */
threads: number | null, 
/**
 * I/O engine: `uring` or `epoll`.
 */
engine: string | null, keep_alive: KeepAlive, started_at: string, 
/**
 * The command that measures it again, without secrets. Earlier documents do not tell.
 */
invocation?: Array<string>, 
/**
 * The generator's. Earlier documents do not tell.
 */
machine?: Machine, 
/**
 * Cut from the beginning; the figures leave it out.
 */
warm_up: WarmUp | null, 
/**
 * Without the warm-up.
 */
duration_s: number, 
/**
 * Time in which the run was paused by hand; rates leave it out.
 */
paused_s: number, requests: number, errors: { [key in string]: number }, status: { [key in number]: number }, bytes: number, 
/**
 * Bytes in bodies of complete answers.
 */
body_bytes: number, throughput: number, offered: number, 
/**
 * Share of the offered rate: answered by an overloaded target, else sent.
 */
achieved_ratio: number, 
/**
 * Requests that were due.
 */
requests_offered: number | null, 
/**
 * Requests that were sent.
 */
requests_sent: number | null, 
/**
 * Requests under way when the run ended, which are in no percentile.
 */
requests_unanswered: number | null, 
/**
 * How often requests went out again, because the target had closed a kept connection before they came. Earlier
 * documents do not tell.
 */
requests_repeated?: number, 
/**
 * Arrivals came faster than the target answered: the percentiles are lower bounds.
 */
overloaded: boolean, 
/**
 * What the overloaded target was offered in the whole run, until the arrivals were over.
 */
overload?: Overload, 
/**
 * Stalls that the percentiles of users who wait do not show.
 */
stalls?: Stalls, 
/**
 * Arrivals turned away because too many were in the system.
 */
dropped: number, 
/**
 * Requests of paced users that began late.
 */
late: number, 
/**
 * Requests in the system on average, or users.
 */
in_system: number | null, response_ms: Times, service_ms: Times, first_byte_ms: Times, connect_ms: Times, schedule_lag_ms: Lag, connections: Connections, generator_cpu_cores: number, verdict: Verdict, verdict_reasons: Array<string>, by_name: Array<Requests>, failures: Array<Failure>, thresholds: Array<Check>, histograms: Histograms, windows: Array<Window>, 
/**
 * How many windows there were before a report put neighbours together.
 */
windows_measured?: number, 
/**
 * How the run went over time, where a report put windows together.
 */
timeline?: Timeline, 
/**
 * The goal for the p95 of `response_ms`, if there was one.
 */
goal_p95_ms?: number, 
/**
 * The metrics of a script, under the names that its users know.
 */
script: unknown, };

export type LoadEdit = { users?: number, 
/**
 * Users who come or go a second; null is all at once.
 */
ramp?: number | null, rate?: number, };

export type LoadPhase = "ramping" | "running" | "paused" | "ending" | "ended";

export type LoadStart = { 
/**
 * Users who wait for their answers.
 */
users?: number, 
/**
 * Users who come a second; all at once without it.
 */
ramp?: number, 
/**
 * What a user waits between an answer and the next request, in milliseconds; 0 without it.
 */
think_ms?: number, 
/**
 * Requests a second, whether or not earlier ones are answered.
 */
rate?: number, 
/**
 * When it ends by itself, in seconds; never without it.
 */
run_time_s?: number, 
/**
 * An Artillery script as text, in YAML or JSON. Its sessions take the place of `path` and `method`. Its phases say
 * how many begin, unless `users` or `rate` does. All requests go to what runs here, and files, environment
 * variables and `log` are refused.
 */
script?: string, 
/**
 * `/` without it.
 */
path?: string, 
/**
 * GET without it, or POST with a `body`.
 */
method?: string, 
/**
 * Headers of each request, each as `Name: value`; 50 at most.
 */
headers?: Array<string>, 
/**
 * Body of each request, as it is.
 */
body?: string, 
/**
 * The goal: 95 % of the answers come within so many milliseconds.
 */
p95_ms?: number, };

export type LoadStatistics = { 
/**
 * The load at the same moment.
 */
load: LiveLoad, 
/**
 * A row for each kind of request, 500 at most; the last is that of all together. As in Locust, the name of a
 * request to the target is its path.
 */
statistics: Array<Statistics>, 
/**
 * Requests and failures of each row in the last ten seconds, a second.
 */
current: Array<Current>, 
/**
 * 500 at most.
 */
failures: Array<Failure>, };

export type Machine = { cores: number, memory_bytes: number | null, kernel: string, };

export type Mark = { time_ms: number, kind: MarkKind, 
/**
 * A sentence.
 */
text: string, 
/**
 * The instance's name, if it is about one.
 */
instance: string | null, };

export type MarkKind = "membership" | "crash" | "load" | "phase" | "scaling";

export type Measured = { throughput: number, p50_ms: number | null, p95_ms: number | null, };

export type Measurement = { 
/**
 * Another one for each measurement of this process.
 */
id: number, kind: MeasurementKind, state: MeasurementState, 
/**
 * RFC 3339.
 */
started_at: string, 
/**
 * The command that does the same on a terminal, without secrets.
 */
command: Array<string>, 
/**
 * What is measured now.
 */
step: string, 
/**
 * Seconds, about.
 */
left_s: number | null, 
/**
 * The goal for the p95 in milliseconds.
 */
goal_p95_ms: number | null, 
/**
 * What a plan has measured so far, in order.
 */
probes: Array<Probe>, 
/**
 * Its number in the history, once it has ended with an answer.
 */
run: number | null, 
/**
 * Why there is no answer, in a sentence.
 */
fault: string | null, };

export type MeasurementKind = "plan" | "cost";

export type MeasurementState = "running" | "stopping" | "ended";

export type Method = "repetitions" | "windows";

export type Metric = { metric: string, a: number | null, b: number | null, 
/**
 * B over A less 1; of errors, B less A. With its interval.
 */
change: number | null, low: number | null, high: number | null, outcome: Outcome, 
/**
 * The change for the worse that was allowed, if one was.
 */
allowed: number | null, 
/**
 * It is worse, beyond doubt, and by more than that.
 */
broken: boolean, };

export type Needs = { instances: number, cores_each: number, cores_from: NeedsFrom, memory_bytes_each: number, memory_from: NeedsFrom, };

export type NeedsFrom = "limit" | "measured";

export type NextLimit = { 
/**
 * The limit.
 */
kind: Kind, 
/**
 * The first count at which it holds.
 */
at_instances: number, };

export type Offer = { vendor: string, region: string, machine: string, 
/**
 * Cores as the vendor counts them.
 */
cores: number, memory_gib: number, cpu_kind: CpuKind, month_each: number, instances_each: number, machines: number, 
/**
 * Price of all machines and the balancer a month.
 */
month: number, month_per_thousand: number | null, };

export type Origin = { 
/**
 * The list's name, or the file.
 */
prices: string, currency: string, 
/**
 * The day of the oldest; nothing when none is dated.
 */
as_of: string | null, sources: Array<string>, warnings: Array<string>, };

export type Outcome = "better" | "worse" | "no_significant_difference" | "unknown";

export type Overload = { 
/**
 * Until the arrivals were over.
 */
duration_s: number, offered: number, sent: number, 
/**
 * Complete answers, of any status.
 */
answered: number, 
/**
 * Without an answer, most of them by a timeout.
 */
failed: number, 
/**
 * Under way, in the generator or in the target.
 */
unanswered: number, };

export type Part = { name: PartName, heading: string, 
/**
 * The head, then the rows; without a table empty.
 */
table: Array<Array<string>>, lines: Array<string>, };

export type PartName = "curve" | "findings" | "cost" | "bigger" | "more" | "one_instance" | "tried" | "response_times" | "requests" | "failures" | "thresholds" | "metrics" | "sides" | "notes";

export type Plan = { schema: string, 
/**
 * RFC 3339.
 */
started_at: string, duration_s: number, command: Array<string>, 
/**
 * How it was run beside its command. Earlier documents do not tell.
 */
app?: unknown, 
/**
 * The command that measures it again, without secrets. Earlier documents do not tell.
 */
invocation?: Array<string>, 
/**
 * Method and path of what is sent, without secrets. Earlier documents do not tell.
 */
request?: string, machine: Machine, 
/**
 * Limits of each instance.
 */
limits: Limits | null, 
/**
 * The balancer behind which it was measured, where that is not Tenfold's own.
 */
balancer?: Balancer, goal: Goal, verdict: Verdict, verdict_reasons: Array<string>, 
/**
 * `k`: requests that an instance can usefully hold at once, if that was found.
 */
slots: number | null, 
/**
 * What a balancer with a queue gave it, and should give it: a little more where requests are short.
 */
balancer_slots: number | null, 
/**
 * Whether connections to an instance may be kept, if that was found. Earlier documents do not tell.
 */
idle_connections?: IdleConnections, probes: Array<Probe>, 
/**
 * What the model was fitted to, in seconds and not rounded. Without a workload
 * its goal is a single user.
 */
basis: unknown, curve: Array<Point>, findings: Array<Finding>, 
/**
 * What was changed to tell explanations apart, and what it showed.
 */
interventions: Array<Trial>, recommendation: Recommendation | null, 
/**
 * The answer where no workload was given, and so no recommendation.
 */
capacity: InstanceCapacity | null, 
/**
 * Whether what speaks against the measurements may change the recommendation, so that it is the nearest that
 * is known and no answer.
 */
undecided: boolean, 
/**
 * What else was noticed: where model and measurement disagreed, why it ended early.
 */
notes: Array<string>, 
/**
 * Why no more was measured.
 */
stop: Stop | null, 
/**
 * What the recommendation costs, if that was asked.
 */
cost: Cost | null, };

export type PlanProgress = { 
/**
 * What is measured now.
 */
step: string, 
/**
 * Seconds, about.
 */
left_s: number | null, goal: Goal, max_instances: number, 
/**
 * What was measured so far, in order.
 */
probes: Array<Probe>, 
/**
 * The answer, once it is there.
 */
plan: Plan | null, };

export type PlanStart = { 
/**
 * Users who wait for their answers.
 */
users?: number, 
/**
 * What a user waits between an answer and the next request, in milliseconds.
 */
think_ms?: number, 
/**
 * Requests a second, whether or not earlier ones are answered.
 */
rate?: number, 
/**
 * The goal: 95 % of the answers come within so many milliseconds.
 */
p95_ms?: number, 
/**
 * The same for 99 %.
 */
p99_ms?: number, 
/**
 * `/` without it.
 */
path?: string, 
/**
 * Most instances that may be recommended.
 */
max_instances?: number, 
/**
 * Time for measuring, in seconds.
 */
budget_s?: number, };

export type Point = { instances: number, predicted: Predicted, measured: Measured | null, 
/**
 * What the prediction rests on beside the model, where that is doubtful.
 */
assumes?: Assumption, };

export type Predicted = { throughput: number, low: number, high: number, p50_ms: number | null, p95_ms: number | null, 
/**
 * The interval of the p95; without an upper end the queue may grow without end.
 */
p95_low_ms: number | null, 
/**
 * See `p95_low_ms`.
 */
p95_high_ms: number | null, };

export type Probe = { purpose: Purpose, instances: number, users: number | null, rate: number | null, duration_s: number, requests: number, errors: number, throughput: number, 
/**
 * Requests that were sent a second, by chance more or fewer than the rate.
 */
offered: number | null, latency_ms: Times, service_ms: Times, queue_ms: Times, cpu_cores: CpuCores, 
/**
 * Resident memory of the largest instance.
 */
rss_bytes: number | null, 
/**
 * The instance that its limits held most.
 */
limited: Limited | null, 
/**
 * Processes of instances that the kernel killed at their memory limit meanwhile.
 */
memory_kills: number, verdict: Verdict, verdict_reasons: Array<string>, };

export type Purpose = "ladder" | "saturation" | "goal";

export type Recommendation = { instances: number, 
/**
 * Smallest count that the interval of the model allows.
 */
low: number, 
/**
 * Largest count that it allows.
 */
high: number, goal_met: boolean, 
/**
 * Whether what disturbed the measurements may have changed the answer. Earlier documents do not tell.
 */
could_differ: boolean, limited_by: Kind, next_limit: NextLimit | null, 
/**
 * All of it in words.
 */
reason: string, };

export type ReportKind = "plan" | "load" | "cost" | "compare";

export type Requests = { name: string, method: string, requests: number, errors: number, body_bytes: number, response_ms: Times, histogram: string | null, };

export type Reset = { reason: ResetReason, };

export type ResetReason = "slow" | "old" | "restarted";

export type Rows = { time_ms: number, ids: Array<number>, 
/**
 * Index into the snapshot's `states`.
 */
state: Array<number>, slots: Array<number | null>, in_flight: Array<number | null>, 
/**
 * Requests in ten seconds.
 */
requests: Array<number | null>, 
/**
 * Failures in ten seconds: connections that failed, answers 5xx and what took too long.
 */
failures: Array<number | null>, 
/**
 * Mean service time of the last second in microseconds.
 */
service_mean: Array<number | null>, 
/**
 * Its p95, of the last ten seconds if it had too few requests. With more than 100 instances it is null.
 */
service_p95: Array<number | null>, 
/**
 * Thousandths of a core.
 */
cpu: Array<number | null>, 
/**
 * MiB.
 */
memory: Array<number | null>, restarts: Array<number | null>, };

export type RunDocument = { id: number, kind: string, report: LiveReport, };

export type RunEntry = { id: number, 
/**
 * `plan`, `load` or `cost`.
 */
kind: string, 
/**
 * RFC 3339.
 */
started_at: string, command: string, 
/**
 * The answer in a sentence.
 */
summary: string, };

export type RunList = { 
/**
 * Newest first.
 */
runs: Array<RunEntry>, 
/**
 * Whether there are older ones.
 */
more: boolean, };

export type Series = { name: SeriesName, 
/**
 * Of `core`: which one.
 */
index: number | null, unit: Unit, 
/**
 * The value in `unit` is the integer divided by this.
 */
per: number, };

export type SeriesName = "requests" | "failures" | "offered" | "p50" | "p75" | "p90" | "p95" | "p99" | "max" | "users" | "in_flight" | "queued" | "queue_p50" | "queue_p95" | "shed" | "instances" | "ready" | "cpu_app" | "cpu_dependencies" | "cpu_balancer" | "cpu_generator" | "cpu_other" | "cpu_steal" | "core";

export type Setting = { instances: number, 
/**
 * Cores of each instance.
 */
cpus: number, memory_bytes: number, month: number, 
/**
 * Price of a month for a thousand requests a second; nothing when the goal is missed.
 */
month_per_thousand: number | null, 
/**
 * Whether no other costs as little and does more.
 */
on_frontier: boolean, 
/**
 * Nothing where it could not be measured.
 */
measured: SettingMeasured | null, 
/**
 * Why not.
 */
failure: string | null, };

export type SettingMeasured = { 
/**
 * Whether the errors and percentiles are what was wanted.
 */
goal_met: boolean, 
/**
 * How long it was measured.
 */
duration_s: number, 
/**
 * What the wanted number of requests takes at the measured rate.
 */
time_s: number | null, requests: number, errors: number, throughput: number, 
/**
 * Bytes received a second.
 */
transfer: number, min_ms: number | null, mean_ms: number | null, p95_ms: number | null, p99_ms: number | null, max_ms: number | null, 
/**
 * Time of the whole over its requests: what ab calls the time per request across all concurrent ones.
 */
per_request_ms: number | null, cpu_cores: CpuCores, 
/**
 * What kept it from doing more.
 */
limited_by: Limit, 
/**
 * The instance that its limits held most.
 */
limited: Limited | null, 
/**
 * A status of the answers, where all of them sent the client elsewhere.
 */
redirect: number | null, 
/**
 * Processes that the kernel killed at their memory limit.
 */
memory_kills: number, verdict: Verdict, verdict_reasons: Array<string>, };

export type Side = { 
/**
 * Numbers in the history, or files.
 */
runs: Array<string>, target: string, workload: string, 
/**
 * The worst of them.
 */
verdict: Verdict, };

export type Sizing = { schema: string, 
/**
 * RFC 3339.
 */
started_at: string, duration_s: number, command: Array<string>, 
/**
 * The command that measures it again, without secrets. Earlier documents do not tell.
 */
invocation?: Array<string>, machine: Machine, 
/**
 * Requests of each measurement, and how many at once.
 */
requests: number, concurrency: number, 
/**
 * The goal that answers must hold to count.
 */
p95_ms: number | null, p99_ms: number | null, max_error_ratio: number, prices: Origin, 
/**
 * Price of the balancer a month, for several instances.
 */
balancer_month: number, 
/**
 * One instance of growing size.
 */
vertical: Array<Setting>, 
/**
 * More and more instances of the smallest size; the first is the vertical line's first.
 */
horizontal: Array<Setting>, advice: Advice | null, verdict: Verdict, verdict_reasons: Array<string>, notes: Array<string>, };

export type Spread = { least: Array<number | null>, mean: Array<number | null>, most: Array<number | null>, };

export type Stage = "warm_up" | "measured";

export type Stalls = { count: number, 
/**
 * All of them together.
 */
duration_s: number, longest_ms: number, 
/**
 * The p99 of users, who wait for their answers.
 */
p99_ms: number, 
/**
 * Percentiles of requests that come at the same mean rate without waiting for each other.
 */
corrected_ms: Corrected, };

export type Statistics = { method: string, name: string, requests: number, failures: number, median: number | null, p95: number | null, p99: number | null, average: number | null, min: number | null, max: number | null, 
/**
 * Bytes of a body.
 */
average_size: number | null, rate: number, failure_rate: number, };

export type Status = "met" | "not_met" | "unclear" | "measured";

export type Stop = { reason: StopReason, 
/**
 * The reason in a sentence.
 */
explanation: string, };

export type StopReason = "confirmed" | "swept" | "capacity" | "budget" | "failing" | "generator_bound" | "unsteady" | "unmeasurable" | "interrupted";

export type Summary = { kind: ReportKind, 
/**
 * What was measured: a command or a target.
 */
subject: string, status: Status, 
/**
 * The status in a word or two.
 */
status_word: string, 
/**
 * The answer first, then what to know beside it.
 */
answer: Array<string>, 
/**
 * Why the measurement is not to be trusted.
 */
doubt: string | null, goal: string | null, 
/**
 * Which stand after what the page draws.
 */
parts: Array<Part>, facts: Array<Fact>, 
/**
 * The command that measures it again.
 */
repeat: string | null, 
/**
 * How response times are distributed, of each side.
 */
latency: Array<LatencyCurve>, 
/**
 * The figures of each kind of request, and of all together as the last.
 */
statistics: Array<Statistics>, };

export type Tick = { 
/**
 * Milliseconds since 1970.
 */
time_ms: number, values: Array<number | null>, };

export type Tier = { 
/**
 * Milliseconds since 1970, the end of each.
 */
time_ms: Array<number>, 
/**
 * A column for each series: the value, or the mean where a point stands for several ticks.
 */
mean: Array<Array<number | null>>, 
/**
 * The least values. It is empty where each point is one tick.
 */
min: Array<Array<number | null>>, 
/**
 * The greatest values. It is empty where each point is one tick.
 */
max: Array<Array<number | null>>, };

export type Timeline = { 
/**
 * From the beginning of the run to that of each step.
 */
start_s: Array<number>, 
/**
 * The length of each.
 */
seconds: Array<number>, 
/**
 * Successful ones a second.
 */
requests: Spread, 
/**
 * A second.
 */
failures: Spread, 
/**
 * Milliseconds, as all percentiles here: in the middle of all requests of the step, at the ends of its windows.
 */
p50: Spread, p95: Spread, p99: Spread, users: Spread, in_flight: Spread, };

export type Times = { mean: number | null, p50: number | null, p75: number | null, p90: number | null, p95: number | null, p99: number | null, p999: number | null, max: number | null, };

export type Trend = { kind: string, command: string, points: Array<TrendPoint>, };

export type TrendPoint = { id: number, started_at: string, 
/**
 * Of a load what was completed, and of a plan what one instance completed at most, a second.
 */
throughput: number | null, 
/**
 * Milliseconds. Of a plan it is that of the recommended count.
 */
p95_ms: number | null, 
/**
 * Share of requests that failed.
 */
error_ratio: number | null, 
/**
 * The recommended count of a plan.
 */
instances: number | null, verdict: Verdict, };

export type Trial = { change: Change, 
/**
 * Instances that ran.
 */
instances: number, 
/**
 * Requests a second before.
 */
before: number, 
/**
 * And after.
 */
after: number, 
/**
 * What it speaks for.
 */
shows: Kind, 
/**
 * All of it in a sentence.
 */
text: string, };

export type Unit = "per_second" | "milliseconds" | "cores" | "count";

export type Verdict = "valid" | "suspect" | "invalid";

export type WarmUp = { length_s: number, 
/**
 * What took longest to become steady: users, throughput or response_time.
 */
by: string, };

export type Window = { 
/**
 * From the beginning of the run.
 */
start_s: number, stage: Stage, seconds: number, 
/**
 * Requests that ended in it, and those of them that failed.
 */
requests: number, errors: number, throughput: number, users: number, in_flight: number, 
/**
 * Inside the generator, for a connection.
 */
waiting: number, bytes: number, response_ms: Times, histogram: string | null, };
