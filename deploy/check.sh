#!/bin/sh
# Checks what is in this folder with the programs that will read it, as far as they are installed; it says which are
# not. Nothing is started and nothing is fetched. Exits with 1 when a check fails. Usage: deploy/check.sh
set -u
cd "$(dirname "$0")"
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
PATH=$PATH:/usr/sbin:/sbin
failed=0

# check NAME PROGRAM COMMAND…: runs a command where the program is installed, and shows what it said when it fails.
check() {
  name=$1
  program=$2
  shift 2
  if ! command -v "$program" > /dev/null; then
    echo "skipped  $name: $program is not installed"
  elif "$@" > "$temporary/said" 2>&1; then
    echo "ok       $name"
  else
    failed=1
    echo "FAILED   $name"
    sed 's/^/         /' "$temporary/said"
  fi
}

for script in *.sh ha/*.sh; do check "$script: syntax" sh sh -n "$script"; done

# 3.0 of 10: exposure is an integer of tenths here.
for unit in systemd/*.service; do
  check "$unit: exposure" systemd-analyze systemd-analyze security --offline=true --threshold=30 --no-pager "$unit"
done

cp monitoring/rules.yaml "$temporary/wcrm-rules.yaml"
cp monitoring/prometheus.yaml "$temporary/prometheus.yml"
check monitoring/rules.yaml promtool promtool check rules monitoring/rules.yaml
check monitoring/prometheus.yaml promtool promtool check config "$temporary/prometheus.yml"

check proxy/Caddyfile caddy env HOME="$temporary" XDG_DATA_HOME="$temporary" XDG_CONFIG_HOME="$temporary" \
  caddy validate --adapter caddyfile --config proxy/Caddyfile

if command -v openssl > /dev/null; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=crm.example.com \
    -keyout "$temporary/privkey.pem" -out "$temporary/fullchain.pem" 2> /dev/null
  sed "s|/etc/ssl/wcrm|$temporary|" proxy/nginx.conf > "$temporary/wcrm.conf"
  printf 'pid %s/pid; error_log stderr; events {} http { access_log off; include %s/wcrm.conf; }\n' \
    "$temporary" "$temporary" > "$temporary/nginx.conf"
  check proxy/nginx.conf nginx nginx -t -q -e stderr -c "$temporary/nginx.conf"
else
  echo 'skipped  proxy/nginx.conf: openssl is not installed'
fi

check 'ha/*.in: filled in' sh ha/render.sh 1 "$temporary/ha" ha/cluster.env.example
check ha/haproxy.cfg.in haproxy haproxy -c -q -f "$temporary/ha/haproxy.cfg"

for value in WCRM_SITE WCRM_SECRET POSTGRES_PASSWORD WCRM_METRICS_TOKEN NODE_SHA256; do
  echo "$value=x" >> "$temporary/compose.env"
done
# Docker without its plugin knows no compose.
docker compose version > /dev/null 2>&1 && compose=docker || compose=docker-compose-plugin
check compose.yaml "$compose" docker compose --env-file "$temporary/compose.env" -f compose.yaml config -q
check helm/ helm helm lint helm --set mediaClaim=media
exit "$failed"
