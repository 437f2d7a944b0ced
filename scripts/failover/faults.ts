import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { listDatabaseProcesses, type Machine } from '../../deploy/ha/cluster.ts'
import { cutOff, fillDisk, reconnect } from './network.ts'
import type { Scene } from './scene.ts'

/** Something that goes wrong. */
export type Fault = {
  name: string
  /** Whether another machine takes over. */
  movesLeader: boolean
  /** Makes it, and returns how it is repaired. `leader`: the machine that leads now. */
  cause: (scene: Scene, leader: Machine) => Promise<() => Promise<void> | void>
  /** How long it lasts at least, in seconds. */
  seconds?: number
}

const hostOf = ({ hosts }: Scene, { number }: Machine) => hosts[number - 1]!

/** Ends Patroni and PostgreSQL at once, as when a machine loses its power, and returns how both are started again. */
const kill = (scene: Scene, machine: Machine): (() => void) => {
  for (const pid of [machine.patroni!.pid!, ...listDatabaseProcesses(machine)])
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It ended by itself.
    }
  return () => scene.cluster.startPatroni(machine)
}

const killLeader: Fault = {
  name: 'kill -9 of the leader',
  movesLeader: true,
  cause: (scene, leader) => Promise.resolve(kill(scene, leader)),
}

const cutOffLeader: Fault = {
  name: 'the leader cut off for 30 s',
  movesLeader: true,
  seconds: 30,
  cause: (scene, leader) => {
    cutOff(hostOf(scene, leader))
    return Promise.resolve(() => reconnect(hostOf(scene, leader)))
  },
}

const killStandby: Fault = {
  name: 'kill -9 of the synchronous standby',
  movesLeader: false,
  seconds: 20,
  cause: async (scene, leader) => {
    const standby = await scene.cluster.findSynchronous()
    if (!standby || standby === leader) throw new Error('there is no synchronous standby')
    return kill(scene, standby)
  },
}

/** PostgreSQL goes on until its log needs the disk, and then ends itself; Patroni lets another machine lead. */
const fillLeader: Fault = {
  name: "the leader's disk full",
  movesLeader: true,
  seconds: 20,
  cause: (_scene, leader) => {
    const filling = fillDisk(join(leader.folder, 'data'))
    return Promise.resolve(() => rmSync(filling))
  },
}

/** Every fault of a run, in order. */
export const FAULTS: readonly Fault[] = [
  ...Array.from({ length: 5 }, () => killLeader),
  cutOffLeader,
  killStandby,
  fillLeader,
]

/** When it began, and when another machine led; monotonic clock, in milliseconds. */
export type Course = { from: number; leaderAt: number | undefined; to: number }

const LEADER_WITHIN_MS = 90_000
const LOOK_EVERY_MS = 200
/** How long the clients are watched when all is well again. */
const WATCHED_MS = 16_000

const waitForAnother = async ({ cluster }: Scene, leader: Machine): Promise<number> => {
  const others = cluster.machines.filter((machine) => machine !== leader)
  const deadline = performance.now() + LEADER_WITHIN_MS
  while (performance.now() < deadline) {
    if (await cluster.findLeader(others)) return performance.now()
    await pause(LOOK_EVERY_MS)
  }
  throw new Error(`no other machine leads after ${LEADER_WITHIN_MS / 1000} s`)
}

/** Makes a fault, watches what follows, repairs it, and returns when the cluster is complete again. */
export const runFault = async (scene: Scene, fault: Fault): Promise<Course> => {
  const leader = await scene.cluster.waitUntilComplete()
  const from = performance.now()
  const repair = await fault.cause(scene, leader)
  const leaderAt = fault.movesLeader ? await waitForAnother(scene, leader) : undefined
  const watchedUntil = Math.max((leaderAt ?? from) + WATCHED_MS, from + 1000 * (fault.seconds ?? 0))
  await pause(watchedUntil - performance.now())
  const to = performance.now()
  await repair()
  await scene.cluster.waitUntilComplete()
  return { from, leaderAt, to }
}
