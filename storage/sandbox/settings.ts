import { sql } from 'kysely'
import type { Db } from '../database.ts'

/** How the sandbox behaves. It is stored, so that every server of the database behaves alike. */
export type SandboxSettings = {
  /** How many times more each update is delivered. */
  duplicates: number
  /** Updates arrive in random order, within a webhook and across several. */
  shuffle: boolean
  /** The maximum of updates in one webhook. */
  batch: number
  /** True when an ad opens the reply window for 72 hours, false when it affects billing only. */
  free_entry: boolean
  /** After how many seconds the reviewer approves a template; null: only on request. */
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

export const DEFAULT_SANDBOX_SETTINGS: SandboxSettings = {
  duplicates: 0,
  shuffle: false,
  batch: 1000,
  free_entry: true,
  review_seconds: 2,
  throughput: null,
  pair_burst: null,
  pair_seconds: 6,
}

export const loadSandboxSettings = async (db: Db): Promise<SandboxSettings> => {
  const row = await db
    .selectFrom('sandbox_settings')
    .select('value')
    .$castTo<{ value: Partial<SandboxSettings> }>()
    .executeTakeFirst()
  return { ...DEFAULT_SANDBOX_SETTINGS, ...row?.value }
}

export const updateSandboxSettings = async (
  db: Db,
  change: Partial<SandboxSettings>,
): Promise<SandboxSettings> => {
  const { rows } = await sql<{ value: Partial<SandboxSettings> }>`
    insert into sandbox_settings (value) values (${JSON.stringify(change)}::jsonb)
    on conflict (id) do update set value = sandbox_settings.value || excluded.value
    returning value`.execute(db)
  return { ...DEFAULT_SANDBOX_SETTINGS, ...rows[0]!.value }
}
