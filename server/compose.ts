import { type App, type AppOptions, createApp } from './app.ts'
import { type ProviderConfig, providerSettings } from './provider/settings.ts'
import { createDriver, type Driver } from './sandbox-driver/driver.ts'

/** A request handler outside of the operations, by path. */
export type Mounts = Record<string, (request: Request) => Promise<Response>>

/** A server without its listener: what is served, and the work that nobody asks for. */
export type Service = {
  app: App
  mounts: Mounts
  driver: Driver
  /** The provider's side, where this server plays it itself. */
  sandbox: undefined
}

/** `localUrl`: where this process reaches itself; the built-in sandbox and its webhooks go by it, whatever the public URL is. */
export type ServiceOptions = Omit<AppOptions, 'provider'> & { provider: ProviderConfig; localUrl: string; mediaDir: string }

export const compose = ({ provider: config, localUrl, mediaDir: _mediaDir, ...options }: ServiceOptions): Service => {
  const settings = providerSettings(config, options.secret, localUrl)
  const app = createApp(options)
  const driver = createDriver(app, settings)
  return { app, driver, sandbox: undefined, mounts: { '/sandbox': driver.serve, '/sandbox/**': driver.serve } }
}
