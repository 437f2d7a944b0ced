#!/bin/sh
# Tries a restore: backs a database up, checks the file, restores it into an empty PostgreSQL database, and compares
# every table of the two by its number of rows and its checksum. Prints how long each step takes. Changes nothing but the
# empty database. Received files are checked as part of the backup, and restored nowhere.
# Usage: restore-drill.sh EMPTY_DATABASE_URL [FOLDER]. The database to back up is that of WCRM_DATABASE_URL or WCRM_DATA.
# An existing backup is tried with BACKUP=FILE.
set -eu
target=$1
folder=$(mktemp -d "${2:-${TMPDIR:-/tmp}}/wcrm-drill-XXXXXX")
trap 'rm -rf "$folder"' EXIT INT TERM
umask 077
node=${NODE:-/opt/node/bin/node}
wcrm=$(dirname "$0")/../bin/wcrm.js

step() {
  name=$1
  shift
  begin=$("$node" -p 'Date.now()')
  "$@" > "$folder/out" 2> "$folder/err" || { cat "$folder/err" >&2; echo "$name: FAILED" >&2; exit 1; }
  end=$("$node" -p 'Date.now()')
  printf '%-34s %8s s\n' "$name" "$("$node" -p "(($end - $begin) / 1000).toFixed(1)")"
}

admin() {
  "$node" "$wcrm" admin "$@" --json
}

# The restored database is not that of the variables.
restored() {
  WCRM_DATABASE_URL='' admin "$@" --database-url "$target"
}

backup=${BACKUP:-$folder/backup.gz}
[ -n "${BACKUP:-}" ] || step 'backup' admin backup "$backup"
step 'verify' admin backup verify "$backup"
cp "$folder/out" "$folder/before.json"
step 'restore' restored restore "$backup"
step 'backup of the restored database' restored backup "$folder/again.gz"
step 'verify' admin backup verify "$folder/again.gz"
cp "$folder/out" "$folder/after.json"
"$node" --input-type=module -e '
  import { readFileSync } from "node:fs"
  const [before, after] = process.argv.slice(1).map((file) => JSON.parse(readFileSync(file, "utf8")))
  const names = [...new Set([...Object.keys(before.tables), ...Object.keys(after.tables)])]
  const differing = names.filter((name) =>
    before.tables[name] !== after.tables[name] || (before.checksums[name] ?? null) !== (after.checksums[name] ?? null))
  for (const name of differing)
    console.error(`${name}: ${before.tables[name]} rows before, ${after.tables[name]} after, another content`)
  console.log(`${names.length} tables, ${before.rows.toLocaleString("en")} rows, ` +
    `${(before.bytes / 1e6).toFixed(1)} MB, made ${before.made_at}: ` +
    (differing.length === 0 ? "the restored database is the same" : "DIFFERENT"))
  process.exitCode = differing.length === 0 ? 0 : 1
' "$folder/before.json" "$folder/after.json"
