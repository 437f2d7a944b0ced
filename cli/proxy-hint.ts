import type { Io } from './io.ts'

/** Codes of a connection that was refused at once: where it was made directly, no proxy was needed for it. */
const REACHED = /\bECONNREFUSED\b/

const findProxy = (env: Io['env'], { protocol }: URL): [name: string, value: string] | undefined => {
  const name = `${protocol.slice(0, -1)}_proxy`
  return [name, name.toUpperCase()].flatMap((one): [string, string][] => {
    const value = env[one]
    return value ? [[one, value]] : []
  })[0]
}

/** Whether `NO_PROXY` names the host: itself, a domain of it, or all. */
const isExempt = (env: Io['env'], { hostname, port }: URL): boolean =>
  (env['no_proxy'] ?? env['NO_PROXY'] ?? '')
    .split(/[\s,]+/)
    .filter((item) => item !== '')
    .some((item) => {
      const domain = item.replace(/^\*?\.?/, '')
      return (
        item === '*' || [hostname, `${hostname}:${port}`].includes(domain) || hostname.endsWith(`.${domain}`)
      )
    })

/**
 * Returns what to look at when a server cannot be reached and a proxy is set: Node uses it only when it is told to.
 * `detail`: the address of the server, and why.
 */
export const describeProxy = ({ env }: Pick<Io, 'env'>, detail: string): string | undefined => {
  const url = URL.parse(/^\S+(?=: )/.exec(detail)?.[0] ?? '')
  const [name, value] = (url && findProxy(env, url)) ?? []
  if (!url || name === undefined || isExempt(env, url)) return undefined
  const isUsed = env['NODE_USE_ENV_PROXY'] === '1' || /--use-env-proxy\b/.test(env['NODE_OPTIONS'] ?? '')
  const host = URL.parse(value!)?.host ?? 'no URL'
  if (isUsed) return `Requests go through the proxy of ${name} (${host}): does it reach the server?`
  return REACHED.test(detail) ? undefined : `${name} is set, but used only with NODE_USE_ENV_PROXY=1.`
}
