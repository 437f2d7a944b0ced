import postgres from 'postgres'

/**
 * Formats a timestamp of a column or of JSON without a `Date`; sessions are in UTC, and the times of the
 * benchmark have at most three decimals.
 */
export const toIso = (text: string): string =>
  `${text.slice(0, 10)}T${text.slice(11, 19)}.${text.slice(20, text.indexOf('+', 19)).padEnd(3, '0')}Z`

const timestamp = { to: 1184, from: [1114, 1184], serialize: (v: unknown) => v as string, parse: toIso }

export type Row = Record<string, unknown>
/** Runs one prepared statement in autocommit. */
export type Query = (text: string, parameters: readonly unknown[]) => Promise<Row[]>

/** The name by which the processes of these connections are told from those of the product. */
export const BARE_APPLICATION = 'bare'

const connect = (url: string, max: number, settings: Record<string, string> = {}): Query => {
  const sql = postgres(url, {
    max,
    onnotice: () => {},
    connection: { application_name: BARE_APPLICATION, TimeZone: 'UTC', jit: 'off', ...settings } as never,
    types: { timestamp },
  })
  return (text, parameters) => sql.unsafe(text, parameters as never[], { prepare: true })
}

export type Database = {
  workspaceId: string
  /** Short reads share two connections, so that they share packets. */
  quick: Query
  write: Query
  /** Plans `like` patterns for their value; a generic plan would read the whole index. */
  search: Query
}

export const openDatabase = (url: string, workspaceId: string): Database => ({
  workspaceId,
  quick: connect(url, 2),
  write: connect(url, 16),
  search: connect(url, 16, { plan_cache_mode: 'force_custom_plan' }),
})
