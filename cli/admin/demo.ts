import { generateContacts } from '../../server/demo/generate.ts'
import { createDemo } from '../../server/demo/demo.ts'
import { usage } from '../fault.ts'
import { text } from './flags.ts'
import { progress } from './show.ts'
import type { Flags, Verb } from './verb.ts'

const numberOf = (flags: Flags, name: string, fallback: number, most: number): number => {
  const value = text(flags, name) ?? String(fallback)
  if (!/^\d{1,10}$/.test(value) || Number(value) > most)
    throw usage(`--${name} takes a whole number up to ${most}, not "${value}".`, `--${name}`)
  return Number(value)
}

/** Phones are counted through; beyond this two would meet. */
const MOST_CONTACTS = 5_000_000

const demo: Verb = {
  name: 'demo',
  summary: 'Add made-up contacts to a workspace, or the demo workspace to an empty database',
  scoped: true,
  about:
    'Each contact has five custom values, three tags, some groups and two conversations; some received broadcasts. The same seed makes the same people.',
  options: [
    ['--contacts <n>', 'how many (default: 1000)'],
    ['--seed <n>', 'another seed makes other people (default: 1)'],
  ],
  run: async (session, flags) => {
    const contacts = numberOf(flags, 'contacts', 1000, MOST_CONTACTS)
    const seed = numberOf(flags, 'seed', 1, 2 ** 32 - 1)
    const db = await session.db()
    const made = await createDemo(db, session.now)
    const { id } = await session.workspace()
    const line = progress(session.io, 'contacts')
    const { created } = await generateContacts(db, id, {
      contacts,
      seed,
      now: session.now,
      onProgress: line.tell,
    })
    line.end()
    return {
      workspace_id: id,
      contacts: created,
      ...(made ? { api_key: made.apiKey, test_key: made.testKey } : {}),
    }
  },
}

export const demos: readonly Verb[] = [demo]
