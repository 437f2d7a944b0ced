import { setTimeout as pause } from 'node:timers/promises'
import { startClients } from './clients.ts'
import { type Fault, FAULTS, runFault } from './faults.ts'
import { type Figures, measure } from './figures.ts'
import { runInNamespaces } from './network.ts'
import { type ReadinessProbe, startReadinessProbe } from './readiness.ts'
import { type Scene, startScene } from './scene.ts'
import { type Verdict, verify } from './verify.ts'

/**
 * Runs two servers and two workers on the cluster of deploy/ha while clients write, breaks its machines one after
 * another, and counts what was lost or doubled: `npx node tools/failover/run.ts [FAULT…]`, as root, in about ten
 * minutes. FAULT: numbers of the faults to run, from 1. Exits with 1 when something was lost or doubled, or an answer
 * was late.
 */
const QUIET_MS = 12_000
/** What a change may take some seconds later: this, or, on a busy machine, twice of what it took before. */
const P99_MS = 1_000
const READY_WITHIN_MS = 2_000

const seconds = (value: number | undefined): string => (value === undefined ? '-' : value.toFixed(1))
const milliseconds = (value: number): string => (Number.isNaN(value) ? '-' : String(Math.round(value)))

const SINCE = { leader: 'the new leader', repair: 'the repair', itself: 'the fault' }

const print = ({ name, endsWith }: Fault, figures: Figures, { routes }: Scene): void => {
  const unanswered = figures.unanswered
    .map((value, i) => `${seconds(value)} s (${routes[i]!.name})`)
    .join(', ')
  console.log(`${name}
  new leader after         ${seconds(figures.newLeader)} s
  without an answer        ${unanswered}
  p99                      ${milliseconds(figures.p99Before)} ms before, ${milliseconds(figures.p99First)} ms in the \
5 s after ${SINCE[endsWith]}, ${milliseconds(figures.p99Later)} ms in the next ${seconds(figures.laterSeconds)} s
  slowest answer           ${seconds(figures.slowest)} s
  answered otherwise       ${figures.refused || '-'}; ${figures.refusedLater} after these 5 s`)
}

const isLate = ({ p99Before, p99Later, refusedLater }: Figures): boolean =>
  refusedLater > 0 || p99Later > Math.max(P99_MS, 2 * p99Before)

const conclude = (verdict: Verdict, probe: ReadinessProbe, open: readonly string[]): boolean => {
  for (const [name, { acknowledged, lost, doubled }] of Object.entries({
    contacts: verdict.contacts,
    tags: verdict.tags,
    replies: verdict.replies,
  }))
    console.log(`${name.padEnd(10)} ${acknowledged} acknowledged, ${lost} lost, ${doubled} doubled`)
  const { events, lost, unknown, repeated } = verdict.webhooks
  console.log(
    `webhooks   ${events} events, ${lost} lost, ${unknown} of lost changes, ${repeated} repeated by their id`,
  )
  console.log(`/readyz    slowest answer ${milliseconds(probe.slowestMs)} ms; ${probe.statuses()}`)
  console.log(
    `open       ${open.length} changes without a final answer${open.map((line) => `\n  ${line}`).join('')}`,
  )
  const { contacts, tags, replies } = verdict
  const broken = [contacts, tags, replies].reduce((sum, one) => sum + one.lost + one.doubled, 0)
  return broken + lost + unknown + open.length === 0 && probe.slowestMs < READY_WITHIN_MS
}

const run = async (folder: string): Promise<number> => {
  const scene = await startScene(folder)
  const chosen = process.argv.slice(2).map(Number)
  const faults = chosen.length > 0 ? chosen.map((number) => FAULTS[number - 1]!) : FAULTS
  try {
    const urls = scene.servers.map(({ url }) => url)
    const probe = startReadinessProbe(urls)
    const clients = startClients({ urls, apiKey: scene.apiKey, conversations: scene.conversations })
    let isInTime = true
    for (const fault of faults) {
      await pause(QUIET_MS)
      const course = await runFault(scene, fault)
      const figures = measure(clients.attempts, urls.length, course)
      print(fault, figures, scene)
      if (isLate(figures)) isInTime = false
    }
    await pause(QUIET_MS)
    await clients.stop()
    await probe.stop()
    const isWhole = conclude(await verify(scene, clients.acknowledged), probe, clients.open)
    return isInTime && isWhole ? 0 : 1
  } finally {
    await scene.stop()
  }
}

await runInNamespaces(run)
