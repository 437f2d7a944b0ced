/** Days that data is kept when its variable is absent. */
export const DEFAULT_DAYS = { events: 400, webhooks: 30, audit: 400 } as const

const DAY = 24

/** Hours that data is kept on every server. data-kinds.ts lists all kinds of data. */
export const FIXED_HOURS = {
  /** The provider repeats an update for seven days. */
  provider_updates: 8 * DAY,
  /** After their end. */
  approvals: 30 * DAY,
  /** After their end. */
  jobs: 30 * DAY,
  /** After they expired: whoever sends one late is told so. */
  plans: 1,
  filter_memberships: 35 * DAY,
  /** Real time that a finished file is kept. */
  export_files: 7 * DAY,
  /** After this nothing is known of an export any more. */
  exports: 30 * DAY,
  /** After the day began that they count for. */
  phone_budgets: 2 * DAY,
  contact_views: 60,
  /** After the hour began. */
  contact_reads: 2 * DAY,
} as const

const HOUR_MS = 3_600_000

/** Returns the time so many hours before, ISO 8601. */
export const hoursAgo = (now: string, hours: number): string =>
  new Date(Date.parse(now) - hours * HOUR_MS).toISOString()
