import { sql } from 'kysely'
import type { Db } from '../database.ts'

/** How the sandbox behaves. It is kept, so that every server of the database behaves alike. */
export type SandboxSettings = {
  /** How many times more each update is delivered. */
  duplicates: number
  /** Updates come in no order, within a webhook and over several. */
  shuffle: boolean
  /** Most updates in one webhook. */
  batch: number
  /** Whether an ad opens the reply window for 72 hours, and not for billing alone. */
  free_entry: boolean
  /** After how long the reviewer approves a template, in seconds; null: never by itself. */
  review_seconds: number | null
  /** Messages a second of one number; null: no limit. */
  throughput: number | null
  /**
   * Messages of one number to one customer: this many at once, and one more every `pair_seconds`; null: no
   * limit.
   */
  pair_burst: number | null
  pair_seconds: number
}

export const defaults: SandboxSettings = {
  duplicates: 0,
  shuffle: false,
  batch: 1000,
  free_entry: true,
  review_seconds: 2,
  throughput: null,
  pair_burst: null,
  pair_seconds: 6,
}

export const readSandboxSettings = async (db: Db): Promise<SandboxSettings> => {
  const { rows } = await sql<{ value: Partial<SandboxSettings> }>`select value from sandbox_settings`.execute(
    db,
  )
  return { ...defaults, ...rows[0]?.value }
}

export const changeSandboxSettings = async (
  db: Db,
  change: Partial<SandboxSettings>,
): Promise<SandboxSettings> => {
  const { rows } = await sql<{ value: Partial<SandboxSettings> }>`
    insert into sandbox_settings (value) values (${JSON.stringify(change)}::jsonb)
    on conflict (id) do update set value = sandbox_settings.value || excluded.value returning value`.execute(
    db,
  )
  return { ...defaults, ...rows[0]!.value }
}
