import { refreshClock } from '../../server/clock.ts'
import { Problem } from '../../server/core/problem.ts'
import { generateReport, nightlySpans, spanByHand } from '../../server/reports/generate.ts'
import { listReports } from '../../storage/staff-reports.ts'
import { usage } from '../fault.ts'
import { nameOf, text } from './flags.ts'
import type { Flags, Group, Session } from './verb.ts'

/** Business time: the sandbox's clock can be ahead. */
const businessTime = async ({ config, db, now }: Session): Promise<string> => {
  const clock = { offsetMs: 0 }
  if (config.providerUrl === undefined) await refreshClock({ db: await db(), clock })
  return new Date(Date.parse(now) + clock.offsetMs).toISOString()
}

/** Days that cannot be are the caller's to mend. */
const asUsage = (error: unknown): unknown => {
  const field = error instanceof Problem ? error.extras.errors?.[0] : undefined
  return field ? usage(`--${(error as Problem).message}`, `--${field.pointer!.slice(2)}`, field.fix) : error
}

const spansOf = (flags: Flags, now: string, workspaceZone: string) => {
  const [from, to, timezone] = [text(flags, 'from'), text(flags, 'to'), text(flags, 'timezone')]
  if (nameOf(flags) !== undefined && from === undefined && to === undefined)
    throw usage('--name is for days that are given.', '--name', 'Add --from and --to.')
  try {
    if (from === undefined && to === undefined) return nightlySpans(now, timezone ?? workspaceZone)
    return [spanByHand(now, workspaceZone, { from, to, timezone }, nameOf(flags) ?? null)]
  } catch (error) {
    throw asUsage(error)
  }
}

const columns = ['id', 'name', 'from', 'to', 'timezone', 'generated_at', 'rows'] as const

export const reports: Group = {
  name: 'reports',
  summary: 'Staff reports that are kept',
  verbs: [
    {
      name: 'generate',
      summary: 'Make and keep staff reports',
      scoped: true,
      columns,
      about:
        'Without days: of yesterday, and of the 7 and 30 days up to it, as a server does each night. Reports answer "wcrm reports staff" for days that they cover.',
      options: [
        ['--from <day>', 'first day, YYYY-MM-DD'],
        ['--to <day>', 'last day, inclusive: yesterday or earlier'],
        ['--timezone <name>', "IANA name (default: the workspace's)"],
        ['--name <name>', 'display name'],
      ],
      run: async (session, flags) => {
        const { id, timezone } = await session.workspace()
        const now = await businessTime(session)
        const db = await session.db()
        const data = []
        for (const span of spansOf(flags, now, timezone)) data.push(await generateReport(db, id, span, now))
        return { data }
      },
    },
    {
      name: 'list',
      summary: 'List the kept reports, newest first',
      scoped: true,
      columns,
      run: async (session) => ({
        data: await listReports(await session.db(), (await session.workspace()).id),
      }),
    },
  ],
}
