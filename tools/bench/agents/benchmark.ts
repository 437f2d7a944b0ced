import { connectAgent, type Cost } from './agent.ts'
import type { Job } from './job.ts'
import { contactJobs } from './jobs/contacts.ts'
import { hostileJobs } from './jobs/hostile.ts'
import { inboxJobs } from './jobs/inbox.ts'
import { workJobs } from './jobs/work.ts'
import { startWorld, type World } from './world.ts'

/** In this order, in one workspace: some depend on the results of others. */
const jobs: readonly Job[] = [...inboxJobs, ...contactJobs, ...workJobs, ...hostileJobs]

/** The result of a job; `problem` when its answer was wrong or the script failed. */
type JobResult = Cost & { name: string; problem?: string }
export type Benchmark = { listed: { tools: number; tokens: number }; jobs: JobResult[] }

const runJob = async (
  world: World,
  job: Job,
): Promise<{ result: JobResult; listed: Benchmark['listed'] }> => {
  await job.prepare?.(world)
  world.decide(job.decision ?? 'approve')
  const agent = await connectAgent({
    url: world.server.url,
    key: world.agentKey({ phones: job.phones ?? false }),
    task: typeof job.task === 'string' ? job.task : job.task(world),
    afterCall: world.afterCall,
  })
  let problem: string | undefined
  try {
    const answer = await job.run(agent)
    await job.check(answer, world)
  } catch (error) {
    problem = (error as Error).message
  }
  return { result: { name: job.name, ...agent.cost, ...(problem ? { problem } : {}) }, listed: agent.listed }
}

/** Runs every job on a new demo workspace. */
export const runBenchmark = async (): Promise<Benchmark> => {
  const world = await startWorld()
  try {
    const results: JobResult[] = []
    let listed = { tools: 0, tokens: 0 }
    for (const job of jobs) {
      const done = await runJob(world, job)
      results.push(done.result)
      listed = done.listed
    }
    return { listed, jobs: results }
  } finally {
    await world.close()
  }
}

const sum = (rows: readonly JobResult[], field: keyof Cost): number =>
  rows.reduce((total, row) => total + row[field], 0)

/** The table as Markdown. */
export const formatTable = ({ listed, jobs: rows }: Benchmark): string =>
  [
    '| job | right | calls | errors | tokens |',
    '|---|---|---:|---:|---:|',
    ...rows.map(
      ({ name, problem, calls, errors, tokens }) =>
        `| ${name} | ${problem === undefined ? 'yes' : 'NO'} | ${calls} | ${errors} | ${tokens} |`,
    ),
    `| ${rows.length} jobs | ${rows.filter(({ problem }) => problem === undefined).length} | ` +
      `${sum(rows, 'calls')} | ${sum(rows, 'errors')} | ${sum(rows, 'tokens')} |`,
    '',
    'The list of tools and the instructions, once for each conversation: ' +
      `${listed.tools} tools, ${listed.tokens} tokens.`,
  ].join('\n')
