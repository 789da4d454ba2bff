#!/bin/sh
# An nginx and its php-fpm for one instance, with all that they write in a directory of their own.
set -eu
PATH=$PATH:/usr/sbin
here=$(cd "$(dirname "$0")" && pwd)
directory=$(mktemp -d)
# The workers of both are not root.
chmod 755 "$directory"
fpm=$(command -v php-fpm || ls /usr/sbin/php-fpm[0-9]* | tail -1)
for name in nginx.conf php-fpm.conf; do
    sed "s|@directory@|$directory|g; s|@here@|$here|g; s|@port@|$PORT|g" "$here/$name" >"$directory/$name"
done
# Of root, php-fpm asks whether it may stay so.
root=$([ "$(id -u)" = 0 ] && echo --allow-to-run-as-root || true)
"$fpm" --nodaemonize $root --fpm-config "$directory/php-fpm.conf" &
fpm_id=$!
nginx -c "$directory/nginx.conf" &
nginx_id=$!
trap 'kill $nginx_id $fpm_id 2>/dev/null; wait; rm -rf "$directory"; exit 0' TERM INT
wait $nginx_id
