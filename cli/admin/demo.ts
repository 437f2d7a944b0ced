import { createDemo, type Demo } from '../../server/demo/demo.ts'
import { createCallers } from '../../server/demo/calls.ts'
import { generateContacts } from '../../server/demo/contacts.ts'
import { readSecrets } from '../../server/secret.ts'
import { hasNoWorkspace } from '../../storage/workspace/admin.ts'
import type { Db } from '../../storage/database.ts'
import { usageError } from '../error.ts'
import { stringFlag } from './flags.ts'
import { createProgressLine } from '../result.ts'
import { openSealer } from './sealing.ts'
import type { AdminFlags, AdminSession, AdminVerb } from './verb.ts'

const numberFlag = (flags: AdminFlags, name: string, defaultValue: number, max: number): number => {
  const value = stringFlag(flags, name) ?? String(defaultValue)
  if (!/^\d{1,10}$/.test(value) || Number(value) > max)
    throw usageError(`--${name} must be an integer up to ${max}, not "${value}".`, `--${name}`)
  return Number(value)
}

/** Phone numbers are generated in sequence; beyond this they would repeat. */
const MAX_DEMO_CONTACTS = 5_000_000

/**
 * Creates the demo workspace in an empty database; undefined when a workspace exists. Without a secret for a
 * PostgreSQL database it has no webhook endpoint: the servers could not open what a secret of this command sealed.
 */
const createDemoWorkspace = async (session: AdminSession, db: Db): Promise<Demo | undefined> => {
  if (!(await hasNoWorkspace(db))) return undefined
  const { config } = session
  const hasSecret = config.databaseUrl === undefined || readSecrets(config).length > 0
  return await createDemo(db, session.now, {
    publicUrl: config.publicUrl,
    webhookSealer: hasSecret ? await openSealer(session, 'webhooks') : undefined,
  })
}

const demo: AdminVerb = {
  name: 'demo',
  access: 'create',
  summary: 'Add generated contacts to a workspace, or create the demo workspace in an empty database',
  scoped: true,
  about:
    'Each contact has five custom values or more, three tags and some groups. The same seed generates the same ' +
    'contacts.',
  options: [
    ['--contacts <n>', 'number of contacts (default: 1000)'],
    ['--seed <n>', 'seed of the random generator (default: 1)'],
  ],
  run: async (session, flags) => {
    const contacts = numberFlag(flags, 'contacts', 1000, MAX_DEMO_CONTACTS)
    const seed = numberFlag(flags, 'seed', 1, 2 ** 32 - 1)
    const db = await session.db()
    const demoWorkspace = await createDemoWorkspace(session, db)
    const workspace = await session.workspace()
    const { id } = workspace
    const line = createProgressLine(session.io, 'contacts')
    const callers = createCallers()
    const { created } = await generateContacts(
      (work) => db.transaction().execute((tx) => work(callers(tx, workspace))),
      { contacts, seed, now: session.now, onProgress: line.update },
    )
    line.end()
    return {
      workspace_id: id,
      contacts: created,
      ...(demoWorkspace ? { api_key: demoWorkspace.apiKey, test_key: demoWorkspace.testKey } : {}),
    }
  },
}

export const demoVerbs: readonly AdminVerb[] = [demo]
