/** The `application_name` of a connection for expensive reads: others overtake it. */
export const HEAVY_APPLICATION_NAME = 'wcrm-heavy'

/**
 * After an expensive statement, others have the session for twice its time, and for more where it took long:
 * a statement of 50 ms may delay everybody, but not every hundredth of their statements.
 */
const MIN_LIGHT_SHARE = 2
const SHARE_PER_MS = 0.2
const MAX_LIGHT_MS = 1_000
/** Without a statement of others for so long, nobody needs the time that is theirs. */
const QUIET_MS = 10

/** Waits for the session; resolves with the function that gives it back. */
type TakeSession = (isHeavy: boolean) => Promise<() => void>

const computeLightMs = (heavyMs: number): number =>
  Math.min(MAX_LIGHT_MS, heavyMs * Math.max(MIN_LIGHT_SHARE, heavyMs * SHARE_PER_MS))

/**
 * Creates the queue in front of the one session of an embedded database. Clients take turns in order, but
 * those of expensive reads only when the others have had their share since the last of these turns, or are
 * quiet. So one expensive statement is the most that anyone waits for, and expensive reads go on whatever
 * the others send.
 */
export const createSessionQueue = (now: () => number = () => performance.now()): TakeSession => {
  const waiting: Record<'light' | 'heavy', (() => void)[]> = { light: [], heavy: [] }
  let isTaken = false
  let lastLightAt = -Infinity
  let heavyFrom = -Infinity
  let timer: NodeJS.Timeout | undefined

  const startNext = (): void => {
    clearTimeout(timer)
    isTaken = false
    const [light] = waiting.light
    const [heavy] = waiting.heavy
    const mayStartAt = light ? heavyFrom : Math.min(heavyFrom, lastLightAt + QUIET_MS)
    const isHeavysTurn = heavy !== undefined && now() >= mayStartAt
    if (!isHeavysTurn && !light) {
      if (heavy) timer = setTimeout(startNext, Math.max(0, mayStartAt - now()))
      return
    }
    isTaken = true
    waiting[isHeavysTurn ? 'heavy' : 'light'].shift()!()
  }
  return (isHeavy) =>
    new Promise((resolve) => {
      const start = () => {
        const startedAt = now()
        resolve(() => {
          if (isHeavy) heavyFrom = now() + computeLightMs(now() - startedAt)
          else lastLightAt = now()
          startNext()
        })
      }
      waiting[isHeavy ? 'heavy' : 'light'].push(start)
      if (!isTaken) startNext()
    })
}
