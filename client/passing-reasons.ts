// Generated from the catalog by scripts/client-types.ts (npm run generate).

/** Reasons of a 409 after which the same call may succeed within seconds. */
export const passingReasons: ReadonlySet<string> = new Set([
  'deleted_meanwhile',
  'event_not_listed',
  'media_pending',
  'still_running',
])
