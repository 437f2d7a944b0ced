/**
 * Reasons of a 409 after which the same call may succeed, with the same idempotency key: within seconds (`soon`), or at
 * the time that the problem names (`later`).
 */
export const passingReasons = {
  deleted_meanwhile: 'soon',
  event_not_listed: 'soon',
  media_pending: 'soon',
  still_running: 'soon',
  too_many_secrets: 'later',
} as const

const passes: Readonly<Record<string, 'soon' | 'later'>> = passingReasons

export const mayPass = (reason: unknown): boolean => Object.hasOwn(passes, String(reason))

export const passesSoon = (reason: unknown): boolean => mayPass(reason) && passes[String(reason)] === 'soon'
