# A PostgreSQL in memory, filled from the SQL file $1, that takes connections of the app from other containers.
set -eu
PATH=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1):$PATH
data=/data/cluster
initdb -D "$data" -U postgres -A trust -E UTF8 -N >/dev/null
echo "host postgres app all trust" >>"$data/pg_hba.conf"
settings="-c dynamic_shared_memory_type=mmap -c max_connections=200 -c fsync=off -c synchronous_commit=off"
settings="$settings -c full_page_writes=off -c autovacuum=off"
pg_ctl -D "$data" -w -s -l /data/filling -o "-k /data -c listen_addresses=" start
{
    echo "CREATE ROLE app LOGIN; GRANT CREATE ON SCHEMA public TO app; SET ROLE app;"
    cat "$1"
} | psql -q -h /data -U postgres -v ON_ERROR_STOP=1 postgres
pg_ctl -D "$data" -w -s stop
exec postgres -D "$data" -k /data -c "listen_addresses=*" $settings
