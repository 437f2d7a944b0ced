#!/bin/sh
# Writes the configuration, with the password from the environment, and becomes PgBouncer.
set -eu
umask 077
printf '"wcrm" "%s"\n' "$POSTGRES_PASSWORD" > /run/pgbouncer/users
cat > /run/pgbouncer/pgbouncer.ini <<END
[databases]
wcrm = host=postgres port=5432 dbname=wcrm

[pgbouncer]
listen_addr = 0.0.0.0
listen_port = 6432
unix_socket_dir =
auth_type = scram-sha-256
auth_file = /run/pgbouncer/users
pool_mode = transaction
max_client_conn = 500
; At least WCRM_DATABASE_CONNECTIONS (18) of all servers and workers together.
default_pool_size = 60
END
exec pgbouncer /run/pgbouncer/pgbouncer.ini
