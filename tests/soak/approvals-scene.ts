import type { Location } from '../../storage/open.ts'
import { createStaffKey } from '../http/owner-key.ts'
import { type TestDatabase, withStorage } from '../databases.ts'
import { type ServerProcess, startProcess } from '../process.ts'
import { freePort } from '../../scripts/free-port.ts'
import { type SandboxProcess, startSandbox } from './sends-scene.ts'

const PERSON_COUNT = 5

export type Decision = {
  person: number
  op: 'approvals_approve' | 'approvals_decline'
  idempotencyKey: string
  text?: string
  server?: number
}

/** Returns who decides what on a request: those of a round at the same time, the rounds one after another. */
export const listRounds = (n: number): Decision[][] => {
  const [one, other] = [n % PERSON_COUNT, (n + 1 + Math.floor(n / 10)) % PERSON_COUNT]
  const approve = (person: number, name: string, more: Partial<Decision> = {}): Decision => ({
    person,
    op: 'approvals_approve',
    idempotencyKey: `decision-${n}-${name}`,
    ...more,
  })
  const decline = (person: number, name: string, more: Partial<Decision> = {}): Decision => ({
    ...approve(person, name, more),
    op: 'approvals_decline',
  })
  const [first, second] = [{ server: 0 }, { server: 1 }]
  const edited = { text: `${toMark(n)} edited` }
  switch (n % 10) {
    case 0:
      return [[approve(one, 'a', first), approve(other, 'b', second)]]
    case 1:
      return [[approve(one, 'a', first), approve(other, 'b', { ...second, ...edited })]]
    case 2:
      return [[approve(one, 'a', first), decline(other, 'b', second)]]
    case 3:
      return [[approve(one, 'a')], [approve(one, 'b')]]
    case 4:
      return [[decline(one, 'a')], [approve(other, 'b')]]
    case 5:
      return [[approve(one, 'a', first), approve(one, 'a', second)]]
    case 6:
      return [[decline(one, 'a')]]
    case 7:
      return [[approve(one, 'a', edited)]]
    default:
      return [[approve(one, 'a')]]
  }
}

export const toMark = (n: number): string => `mark-${String(n).padStart(4, '0')}`

/** Creates the key of an agent, and those of the people who decide. */
export const createKeys = (
  location: Location,
  workspaceId: string,
): Promise<{ agent: string; people: string[] }> =>
  withStorage(location, async ({ db }) => {
    const create = (name: string, agent: boolean): Promise<string> =>
      createStaffKey(db, workspaceId, { name, role: 'manager' }, { agent })
    const people: string[] = []
    for (let n = 0; n < PERSON_COUNT; n++) people.push(await create(`Person ${n}`, false))
    return { agent: await create('Assistant', true), people }
  })

/** Two servers, each of which keeps its port when it is killed and started again, and their sandbox. */
export const startCluster = async (place: TestDatabase, folder: string) => {
  const ports = [await freePort(), await freePort()]
  const urls = ports.map((port) => `http://127.0.0.1:${port}`)
  const sandbox: SandboxProcess = await startSandbox(folder, await freePort(), `${urls[0]}/provider/webhook`)
  const env = {
    WCRM_PROVIDER: 'sandbox',
    WCRM_PROVIDER_URL: sandbox.url,
    WCRM_PROVIDER_TOKEN: sandbox.said.token,
    WCRM_PROVIDER_APP_SECRET: sandbox.said.app_secret,
    WCRM_PROVIDER_VERIFY_TOKEN: sandbox.said.verify_token,
    WCRM_PROVIDER_TIMEOUT: '3',
  }
  const start = (n: number): Promise<ServerProcess> =>
    startProcess([...place.flags, '--port', String(ports[n])], env)
  const processes: Promise<ServerProcess>[] = [start(0), start(1)]
  await Promise.all(processes)
  return {
    urls,
    sandbox,
    /** Resolves when this server is up. */
    ready: (n: number) => processes[n]!,
    /** Kills these servers at once, and starts them again. */
    kill: async (indexes: readonly number[], whileDown: () => Promise<void> = async () => {}) => {
      const down = Promise.all(indexes.map(async (n) => (await processes[n]!).kill('SIGKILL'))).then(
        whileDown,
      )
      for (const n of indexes) processes[n] = down.then(() => start(n))
      await Promise.all(processes)
    },
    close: async () => {
      for (const server of await Promise.allSettled(processes))
        if (server.status === 'fulfilled') await server.value.kill('SIGTERM')
      await sandbox.kill('SIGTERM')
    },
  }
}

export type Cluster = Awaited<ReturnType<typeof startCluster>>
export type Keys = Awaited<ReturnType<typeof createKeys>>
