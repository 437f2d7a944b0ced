import {
  compareSchema,
  describePending,
  migrate,
  refuseNewerSchema,
} from '../../storage/migrations/migrate.ts'
import type { AdminVerb } from './verb.ts'

export const migrateVerb: AdminVerb = {
  name: 'migrate',
  summary: 'Bring the schema of the database to this version',
  about:
    'Servers can keep running if every migration declares it; --dry-run shows this. If several processes ' +
    'migrate at once, one does and the others wait. Prints the applied migrations. A newer schema is refused.',
  scoped: false,
  access: 'migrate',
  columns: ['name', 'servers'],
  options: [['--dry-run', 'print what is pending, and change nothing']],
  run: async (session, flags) => {
    const isDryRun = flags['dryRun'] === true
    const db = await session.db()
    const before = await compareSchema(db)
    refuseNewerSchema(before)
    const say = (message: string): void => void session.io.stderr.write(`${message}\n`)
    const pending = await describePending(db)
    const applied = isDryRun ? [] : await migrate(db, { say })
    const { newest = null, state } = isDryRun ? before : await compareSchema(db)
    const data = isDryRun ? pending : pending.filter(({ name }) => applied.includes(name))
    if (flags['json'] !== true)
      say(
        isDryRun && data.length > 0
          ? `${data.length} pending. Back up first (wcrm admin backup), then: wcrm admin migrate`
          : `${data.length > 0 ? `${data.length} applied. ` : ''}The schema is ${newest}.`,
      )
    return { dry_run: isDryRun, state, schema: newest, data }
  },
}
