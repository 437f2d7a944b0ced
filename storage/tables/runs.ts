import {
  bigint,
  identity,
  integer,
  jsonb,
  nullable,
  smallint,
  text,
  timestamp,
  uuid,
  withDefault,
  type Table,
} from './columns.ts'

/** Work that no request waits for, while it is open. */
export const runTables = {
  runs: {
    workspace_id: bigint(),
    kind: text(),
    subject: text(),
    id: identity(),
    queue: withDefault(text()),
    order_key: nullable(text()),
    needs_version: nullable(text()),
    run_after: withDefault(timestamp()),
    lease: nullable(uuid()),
    attempts: withDefault(smallint()),
    step: withDefault(integer()),
    position: nullable(jsonb()),
  },
} satisfies Record<string, Table>
