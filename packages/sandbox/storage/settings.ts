import { sql } from 'kysely'
import type { Db } from '../../../storage/database.ts'

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

/** The settings of all accounts, which those of an account override. */
const ALL_ACCOUNTS = ''

/** Loads the settings of several accounts, in one statement. */
export const loadSettingsOfAccounts = async (
  db: Db,
  accounts: readonly string[],
): Promise<(account: string) => SandboxSettings> => {
  const rows = await db
    .selectFrom('sandbox_settings')
    .select(['account_id', 'value'])
    .where('account_id', 'in', [ALL_ACCOUNTS, ...accounts])
    .$castTo<{ account_id: string; value: Partial<SandboxSettings> }>()
    .execute()
  const stored = new Map(rows.map((row) => [row.account_id, row.value]))
  return (account) => ({ ...DEFAULT_SANDBOX_SETTINGS, ...stored.get(ALL_ACCOUNTS), ...stored.get(account) })
}

/** Loads the settings of an account, or those of all. */
export const loadSandboxSettings = async (db: Db, account = ALL_ACCOUNTS): Promise<SandboxSettings> =>
  (await loadSettingsOfAccounts(db, [account]))(account)

/** Changes the settings of these accounts, or of all. */
export const updateSandboxSettings = async (
  db: Db,
  change: Partial<SandboxSettings>,
  accounts: readonly string[] = [ALL_ACCOUNTS],
): Promise<void> => {
  await sql`
    insert into sandbox_settings (account_id, value)
    select account_id, ${JSON.stringify(change)}::jsonb from unnest(${accounts}::text[]) as a (account_id)
    on conflict (account_id) do update set value = sandbox_settings.value || excluded.value`.execute(db)
}
