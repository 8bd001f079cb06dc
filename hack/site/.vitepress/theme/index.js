// The theme's own fonts are left out: the browser has some.
import theme from 'vitepress/theme-without-fonts'
import './style.css'

export default theme
